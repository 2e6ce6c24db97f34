#!/bin/sh
# Two factories with the real claude and codex against scripted models; claude's account runs out in the middle of 50 jobs.
# All are shipped, none uses an attempt, and the tokens of all runs are those that the models sent. Not part of the ordinary
# tests: `cargo xtask engines` installs the programs, `cargo build -p giga -p giga-scripted-model` makes the rest.
set -eu
bin=${BIN:-target/debug}
engines=${GIGA_ENGINES:-$HOME/.cache/giga/engines}/node_modules/.bin
jobs=${JOBS:-50}
work=$(mktemp -d)
started=''
stop() { for process in $started; do kill "$process" 2>/dev/null || true; done; }
trap stop EXIT
export PATH="$engines:$PATH"

echo '{"turns":[{"say":"Done.","usage":{"input":1000,"cacheRead":0,"output":50}}]}' > "$work/ok.json"
echo '{"turns":[{"say":"Done."}],"troubles":[{"turn":0,"kind":{"quota_exhausted":{"reset_secs":3600}}}]}' > "$work/out.json"
"$bin/giga-scripted-model" "$work/ok.json" 127.0.0.1:18801 & claude=$!
"$bin/giga-scripted-model" "$work/ok.json" 127.0.0.1:18802 & started="$claude $!"
mkdir -p "$work/home/.codex"
echo '{"OPENAI_API_KEY":"sk-dummy"}' > "$work/home/.codex/auth.json"
cat > "$work/home/.codex/config.toml" <<'END'
model = "gpt-5"
model_provider = "scripted"
[model_providers.scripted]
name = "Scripted"
base_url = "http://127.0.0.1:18802/v1"
wire_api = "responses"
env_key = "OPENAI_API_KEY"
END

"$bin/giga" serve --data "$work/data" --listen 127.0.0.1:17717 & started="$started $!"
until curl -sf http://127.0.0.1:17717/livez > /dev/null; do sleep 0.1; done
GIGA_URL=http://127.0.0.1:17717 GIGA_TOKEN=$(cat "$work/data/admin.token")
export GIGA_URL GIGA_TOKEN
for factory in a b; do
  HOME="$work/home" ANTHROPIC_API_KEY=sk-ant-dummy ANTHROPIC_BASE_URL=http://127.0.0.1:18801 OPENAI_API_KEY=sk-dummy \
    "$bin/giga" factory run --id "$factory" --base "$work/$factory" --seats 2 --sandbox off & started="$started $!"
done
call() { curl -sf -H "authorization: Bearer $GIGA_TOKEN" "$GIGA_URL/api/fleet/$1"; }
until call accounts | grep -q '"codex"'; do sleep 0.2; done

number=0
while [ "$number" -lt "$jobs" ]; do
  number=$((number + 1))
  printf -- '---\nname: job-%s\nproduct: demo\nengine: [claude, codex]\nship: auto\nbudget: {usd: 1}\n---\nSay done.\n' "$number" > "$work/job.md"
  "$bin/giga" job submit "$work/job.md" -o name >> "$work/ids"
done
shipped() { "$bin/giga" job list --stage shipped --limit 500 -o name 2>/dev/null | wc -l; }
until [ "$(shipped)" -ge $((jobs / 3)) ]; do sleep 0.2; done
# Nobody is in the middle of an answer while the model is exchanged: what it sent is counted once.
"$bin/giga" budget pause demo
until [ -z "$("$bin/giga" job list --stage assigned,building -o name 2>/dev/null)" ]; do sleep 0.2; done
curl -sf http://127.0.0.1:18801/asked > "$work/asked-claude.json"
kill "$claude" && wait "$claude" 2>/dev/null || true
"$bin/giga-scripted-model" "$work/out.json" 127.0.0.1:18801 & started="$started $!"
until curl -sf http://127.0.0.1:18801/asked > /dev/null; do sleep 0.1; done
"$bin/giga" budget resume demo
until [ "$(shipped)" -ge "$jobs" ]; do sleep 0.5; done
curl -sf http://127.0.0.1:18802/asked > "$work/asked-codex.json"
"$bin/giga" account list
while read -r id; do call "jobs/$id/runs"; echo; done < "$work/ids" > "$work/runs.jsonl"
python3 - "$work" "$jobs" <<'END'
import collections, json, sys
work, jobs = sys.argv[1], int(sys.argv[2])
runs = [run for line in open(f"{work}/runs.jsonl") if line.strip() for run in json.loads(line)["runs"]]
print(collections.Counter((run["engine"], run["outcome"], run.get("failure", {}).get("reason")) for run in runs))
done = [run for run in runs if run["outcome"] == "succeeded"]
assert len(done) == jobs, len(done)
assert all(run["failure"]["reason"] == "out_of_quota" for run in runs if run["outcome"] == "failed")
for engine in ("claude", "codex"):
    asked = json.load(open(f"{work}/asked-{engine}.json"))
    sent = sum(sum(one["usage"].values()) for one in (asked["asked"] if isinstance(asked, dict) else asked) if one["usage"])
    told = sum(run["report"].get("tokens") or 0 for run in done if run["engine"] == engine)
    print(engine, "sent", sent, "told", told)
    assert sent == told, engine
END
