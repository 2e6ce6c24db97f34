"""What a script inside of a job does with the tools that its factory offers, one after the other."""

import json, os, subprocess, sys

server = subprocess.Popen([os.environ["GIGA_PROGRAM"], "mcp", "--job"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
number = 0

def send(method, params, answered=True):
    global number
    number += 1
    message = {"jsonrpc": "2.0", "method": method, "params": params}
    if answered:
        message["id"] = number
    server.stdin.write(json.dumps(message) + "\n")
    server.stdin.flush()
    return json.loads(server.stdout.readline()) if answered else None

def tool(name, /, **arguments):
    result = send("tools/call", {"name": name, "arguments": arguments})["result"]
    print(name, json.dumps(result), flush=True)
    return result["isError"], result["content"][0]["text"]

client = {"name": "script", "version": "1"}
send("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client})
send("notifications/initialized", {}, answered=False)
with open("made.txt", "w") as made:
    made.write("by the job\n")
assert tool("save_artifact", path="made.txt", mediaType="text/plain")[0] is False
assert tool("save_artifact", name="note.md", text="# Done")[0] is False
assert tool("save_artifact", name="changes.diff", text="+harmless")[0] is True
assert tool("save_artifact", path="/etc/shadow")[0] is True
child = {"manifest": {"name": "child", "engine": "shell", "script": "true"}, "idempotencyKey": "child-1"}
wrong, spawned = tool("spawn_children", children=[child])
assert wrong is False, spawned
assert tool("spawn_children", children=[{"prompt": "no manifest"}])[0] is True
wrong, saved = tool("checkpoint", note="half of it")
assert wrong is False and json.loads(saved)["saved"] is True, saved
assert tool("checkpoint", note="again at once")[0] is True
assert tool("job_history", limit=100)[0] is False
assert json.loads(tool("show_job")[1])["job"]["checkpoint"]["note"] == "half of it"
assert "child" in tool("list_children")[1]
wrong, asked = tool("ask_person", question="Which color?", options=["red", "blue"], waitSeconds=1)
assert wrong is False and json.loads(asked)["state"] == "open", asked
wrong, answer = tool("ask_person", question="Which color?", options=["red", "blue"])
assert wrong is False and json.loads(answer)["answer"] == "blue", answer
server.stdin.close()
sys.exit(server.wait())
