# Owns one PostgreSQL server and its folder. Takes orders on its standard input, one per line, and answers each
# with "ok <what>" or "failed <why>". When the input ends, because the test process is gone for whatever reason,
# it stops the server and removes the folder.
#
# Arguments: the folder with PostgreSQL's programs, then the server's settings.

bin=$1
shift
home=$(mktemp -d /tmp/giga-postgres.XXXXXX) || exit 1
data=$home/data
log=$home/log

if ! "$bin/initdb" -D "$data" -N -A trust -U postgres --locale=C -E UTF8 >"$home/initdb" 2>&1; then
    echo "failed initdb: $(tail -n 1 "$home/initdb")"
    rm -rf "$home"
    exit 1
fi
echo "ok $home"

# Asks until the server on port $1 takes connections; gives up when it has ended.
ready() {
    until "$bin/pg_isready" -q -h 127.0.0.1 -p "$1"; do
        kill -0 "$server" 2>/dev/null || return 1
        sleep 0.02
    done
}

start() {
    port=$1
    shift
    # After a kill -9 the old server's last processes may hold its memory for a moment, so more than once.
    for try in 1 2 3 4 5 6 7 8 9 10; do
        "$bin/postgres" -D "$data" -p "$port" -c unix_socket_directories="$home" "$@" </dev/null >>"$log" 2>&1 &
        server=$!
        ready "$port" && return 0
        wait "$server"
        sleep 0.1
    done
    return 1
}

end() {
    kill -s "$1" "$server" || return 1
    wait "$server" 2>/dev/null
    return 0
}

while read -r order argument; do
    case $order in
        start) if start "$argument" "$@"; then echo "ok started"; else echo "failed $(tail -n 1 "$log")"; fi ;;
        stop) if end INT; then echo "ok stopped"; else echo "failed: it does not run"; fi ;;
        kill) if end KILL; then echo "ok killed"; else echo "failed: it does not run"; fi ;;
    esac
done

end QUIT 2>/dev/null
rm -rf "$home"
