"""Cache of a model's answers: each request is paid for once.

An answer is an entry of the artifact store, keyed by the whole request, with the prompt and the text as
readable files. A round that is run again only sends requests without a stored answer.
"""

from collections.abc import Callable
from pathlib import Path

from pipeline.records.search.model_attempt import ModelAnswer, ModelRequest
from pipeline.search.agents.chat_client import Client, NoAnswer
from pipeline.store.entries import bring_entries, find_entry, new_entry, put_record

STAGE = "answers"
PROMPT, TEXT = "prompt.md", "answer.md"


class Answers:
    """The answers of one endpoint; thread-safe."""

    def __init__(self, root: Path, client: Callable[[], Client]) -> None:
        """`client` is called for the first answer that is not stored: others need no key or endpoint."""
        self._root = root
        self._client = client
        self.kept = 0
        """Number of answers from the store."""
        self.received = 0

    def of(self, request: ModelRequest) -> ModelAnswer | NoAnswer:
        """The answer to a request.

        Raises
        ------
        AgentError
            The endpoint is not there or does not let us in.
        StoreError
            The answer cannot be written.
        """
        entry = request.entry
        bring_entries(self._root, STAGE, [entry])
        kept = find_entry(self._root, STAGE, entry, ModelAnswer)
        if kept is not None:
            self.kept += 1
            return kept
        answer = self._client().ask(request)
        if isinstance(answer, ModelAnswer):
            self.received += 1
            self._keep(answer)
        return answer

    def _keep(self, answer: ModelAnswer) -> None:
        parts = [f"# {message.role}\n\n{message.content}\n" for message in answer.request.messages]
        with new_entry(self._root, STAGE, answer.request.entry) as folder:
            (folder / PROMPT).write_text("\n".join(parts))
            (folder / TEXT).write_text(answer.text)
            put_record(folder, answer)
