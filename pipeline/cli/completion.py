"""Tab completion for `python -m pipeline`: Hydra's own script completes programs, not modules."""

from pipeline.records.environment import rename_completed_command

COMMAND = "python -m pipeline"
_SCRIPT = r"""
_kernelmill_complete() {
    COMPREPLY=()
    [[ "$COMP_LINE" == "python -m pipeline "* ]] || return 0
    local word="${COMP_WORDS[COMP_CWORD]}" choices
    choices=$(COMP_LINE="$COMP_LINE" COMP_POINT="$COMP_POINT" python -m pipeline -sc query=bash 2>/dev/null)
    COMPREPLY=($(compgen -W "$choices" -- "$word"))
}
COMP_WORDBREAKS=${COMP_WORDBREAKS//=}
complete -o nospace -o default -F _kernelmill_complete python
"""
_UNINSTALL = "complete -r python; unset -f _kernelmill_complete"


def script(request: str) -> str | None:
    """What `-sc install=bash` prints; None for a request that Hydra answers (`query=…`, other shells)."""
    return {"install=bash": _SCRIPT.strip(), "uninstall=bash": _UNINSTALL}.get(request)


def prepare_query() -> None:
    """Tell Hydra the line as if we were a program, which is what it can complete."""
    rename_completed_command(COMMAND, "kernelmill")
