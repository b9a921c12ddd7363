"""The Model Context Protocol over standard input and output: an agent's tool calls in, JSON out.

Judging waits in threads of its own, so that a list or a problem is answered while a submission is judged.
Standard output belongs to the protocol; what the pipeline prints goes to standard error.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread
import msgspec

from pipeline.execution.agents.agent_service import AgentService, ServiceOptions
from pipeline.execution.agents.attempt_log import AttemptLog
from pipeline.execution.workers.submit import JUDGE, begin
from pipeline.plan.judging import tracking_settings
from pipeline.records.errors import KernelmillError

if TYPE_CHECKING:
    from mcp.server.mcpserver import Context, MCPServer

INSTRUCTIONS = """\
Write kernels that compute what a PyTorch module computes, and have them judged.
1. list_problems, then read_problem: it says what a candidate is and all that it must be right for.
2. judge a whole Python file with class ModelNew. A refusal says where, got and expected: repair that, and
   judge again. Do not guess: change what the reason names.
3. When it passes, measure it, and make it faster. history shows your earlier attempts.
Every submission is counted; `usage` in the answer says what is left. Stop when a tool says so."""
AT_ONCE = 8
"""Submissions of one connection that wait for their turn; more wait for these."""


def serve(options: ServiceOptions, *, client: str | None, tracking: str) -> None:
    """Answer until standard input ends.

    Raises
    ------
    ConfigError
        There is nothing to judge, or there is no such option.
    """
    settings = tracking_settings(tracking, Path.cwd())
    with AttemptLog(settings, options.store) as log:
        service = AgentService(options, log.put if settings.enabled else None)
        for line in service.complaints:
            print(line, file=sys.stderr)
        begin(JUDGE, "the first submission")  # so that it finds the worker warm
        make_server(service, client).run()


def make_server(service: AgentService, client: str | None) -> "MCPServer[Any]":
    """The server; `client` names who calls, by default as it names itself."""
    from mcp.server.mcpserver import Context, MCPServer

    server: MCPServer[Any] = MCPServer("kernelmill", instructions=INSTRUCTIONS, log_level="WARNING")
    turns = anyio.CapacityLimiter(AT_ONCE)

    def name_of(context: "Context[Any, Any]") -> str:
        params = context.session.client_params
        return client or (params.client_info.name if params is not None else "unnamed")

    @server.tool()
    async def list_problems(context: Context) -> dict[str, Any]:
        """Names of all problems, with the number of your attempts and the best outcome."""
        return await _call(lambda: {"problems": service.problems(name_of(context))})

    @server.tool()
    async def read_problem(problem: str) -> dict[str, Any]:
        """A problem: its source, its inputs, what to submit, and all conditions that it is judged under."""
        return await _call(lambda: service.problem(problem))

    @server.tool()
    async def judge(problem: str, source: str, context: Context) -> dict[str, Any]:
        """Judge a candidate, the text of a Python file with class ModelNew: outcome, reason, what to do."""
        return await _call(lambda: service.judge(name_of(context), problem, source), turns)

    @server.tool()
    async def measure(problem: str, source: str, context: Context) -> dict[str, Any]:
        """Judge a candidate, and measure its time against PyTorch if it passes."""
        return await _call(lambda: service.measure(name_of(context), problem, source), turns)

    @server.tool()
    async def explain_outcome(outcome: str) -> dict[str, Any]:
        """What an outcome such as wrong_value means, and what to look at."""
        return await _call(lambda: service.meaning(outcome))

    @server.tool()
    async def profile(problem: str, attempt: int, context: Context) -> dict[str, Any]:
        """What is known of one of your attempts beyond its verdict: times, bound, registers; what is not."""
        return await _call(lambda: service.profile(name_of(context), problem, attempt))

    @server.tool()
    async def history(problem: str, context: Context) -> dict[str, Any]:
        """Your attempts at a problem, in order, with the sources of the last and of the last that passed."""

        def found() -> dict[str, object]:
            name = name_of(context)
            return {"attempts": service.history(name, problem), "usage": service.usage(name)}

        return await _call(found)

    return server


async def _call(work: Callable[[], object], limiter: anyio.CapacityLimiter | None = None) -> dict[str, Any]:
    """Do it in a thread; an error that the client can act on is one that its model reads."""
    from mcp.server.mcpserver.exceptions import ToolError

    try:
        found = await anyio.to_thread.run_sync(work, limiter=limiter)
    except KernelmillError as error:
        raise ToolError(str(error)) from None
    plain: dict[str, Any] = msgspec.to_builtins(found)
    return plain
