"""A foreign client for the tests: the official Python SDK of the Model Context Protocol, driven line by line.

    client.py stdio MODE COMMAND ARG…     starts a server, with this process's GIGA_… variables
    client.py http MODE URL               GIGA_TOKEN is the bearer token, GIGA_ORIGIN an Origin header

MODE is `legacy` (the initialize handshake) or `auto` (the newest lifecycle that both know). The first line that it prints is what
the server said of itself and its tools. Then every line of standard input is a call, {"name", "arguments"}, and every line of
standard output its result: {"isError", "texts"}, or {"error"} where the protocol itself refused.
"""

import asyncio
import json
import os
import sys

import httpx2
from jsonschema import Draft202012Validator
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError


def transport(kind: str, words: list[str]):
    if kind == "stdio":
        ours = {name: value for name, value in os.environ.items() if name.startswith("GIGA_") or name == "PATH"}
        return stdio_client(StdioServerParameters(command=words[0], args=words[1:], env=ours))
    headers = {"authorization": f"Bearer {os.environ['GIGA_TOKEN']}"}
    for name, header in [("GIGA_ORIGIN", "origin"), ("GIGA_PRODUCT", "x-product-id")]:
        if name in os.environ:
            headers[header] = os.environ[name]
    return streamable_http_client(words[0], http_client=httpx2.AsyncClient(headers=headers, trust_env=False))


def say(value: object) -> None:
    print(json.dumps(value), flush=True)


async def main() -> None:
    kind, mode, *words = sys.argv[1:]
    lines = asyncio.Queue()
    loop = asyncio.get_running_loop()

    def read() -> None:
        for line in sys.stdin:
            loop.call_soon_threadsafe(lines.put_nowait, line)
        loop.call_soon_threadsafe(lines.put_nowait, None)

    async with Client(transport(kind, words), mode=mode) as client:
        tools = (await client.list_tools()).tools
        schemas = {}
        for tool in tools:
            Draft202012Validator.check_schema(tool.input_schema)
            schemas[tool.name] = Draft202012Validator(tool.input_schema)
        say(
            {
                "server": client.server_info.name,
                "protocol": client.protocol_version,
                "instructions": client.instructions,
                "tools": {tool.name: tool.annotations.model_dump(exclude_none=True) for tool in tools},
            }
        )
        loop.run_in_executor(None, read)
        while (line := await lines.get()) is not None:
            call = json.loads(line)
            name, arguments = call["name"], call["arguments"]
            try:
                result = await client.call_tool(name, arguments)
            except MCPError as error:
                say({"error": error.error.message})
                continue
            # What was taken must have been allowed by what the server says of itself.
            valid = name in schemas and schemas[name].is_valid(arguments)
            texts = [block.text for block in result.content]
            say({"isError": bool(result.is_error), "valid": valid, "texts": texts})


asyncio.run(main())
