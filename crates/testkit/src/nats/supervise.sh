# Owns one NATS server and its folder. Takes orders on its standard input, one per line, and answers each with
# "ok <what>" or "failed <why>". When the input ends, because the test process is gone for whatever reason, it ends the
# server and removes the folder.
#
# Arguments: the server program, then its settings.

program=$1
shift
home=$(mktemp -d /tmp/giga-nats.XXXXXX) || exit 1
log=$home/log
echo "ok $home"

# Starts on port $1, -1 for any that is free. The server writes its addresses to a file when it takes connections.
start() {
    port=$1
    shift
    "$program" -a 127.0.0.1 -p "$port" --ports_file_dir "$home" -js -sd "$home/js" "$@" </dev/null >>"$log" 2>&1 &
    server=$!
    until [ -s "$home/nats-server_$server.ports" ]; do
        kill -0 "$server" 2>/dev/null || return 1
        sleep 0.02
    done
}

end() {
    kill -s "$1" "$server" || return 1
    wait "$server" 2>/dev/null
    return 0
}

while read -r order argument; do
    case $order in
        start)
            if start "$argument" "$@"; then
                echo "ok $(tr -d '\n' <"$home/nats-server_$server.ports")"
            else
                echo "failed $(tail -n 1 "$log")"
            fi
            ;;
        kill) if end KILL; then echo "ok killed"; else echo "failed: it does not run"; fi ;;
        reload) if kill -s HUP "$server"; then echo "ok reloading"; else echo "failed: it does not run"; fi ;;
        wipe) if rm -rf "$home/js"; then echo "ok wiped"; else echo "failed: $home/js is still there"; fi ;;
    esac
done

end KILL 2>/dev/null
rm -rf "$home"
