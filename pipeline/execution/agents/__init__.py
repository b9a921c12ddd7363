"""Problems for coding agents: sources in, verdicts with reasons out, through a server that they call.

`agent_service` is what an agent can ask, `mcp_server` the protocol.
"""
