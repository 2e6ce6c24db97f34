# Owns one Azurite. Takes orders on its standard input and answers each with "ok <what>" or "failed <why>". When the
# input ends, because the test process is gone for whatever reason, it ends the server and removes the folder.
#
# Argument: the server program.

program=$1
home=$(mktemp -d /tmp/giga-azurite.XXXXXX) || exit 1
log=$home/log
cd "$home" || exit 1
echo "ok $home"

# On any free port; it says which one when it takes connections.
start() {
    "$program" --blobHost 127.0.0.1 --blobPort 0 --inMemoryPersistence --silent --disableTelemetry \
        --skipApiVersionCheck </dev/null >"$log" 2>&1 &
    server=$!
    until grep -q "successfully listens on" "$log"; do
        kill -0 "$server" 2>/dev/null || return 1
        sleep 0.02
    done
}

while read -r order; do
    case $order in
        start)
            if start; then
                echo "ok $(sed -n 's/.*successfully listens on //p' "$log")"
            else
                echo "failed $(tail -n 1 "$log")"
            fi
            ;;
    esac
done

kill -s KILL "$server" 2>/dev/null
wait "$server" 2>/dev/null
cd / && rm -rf "$home"
