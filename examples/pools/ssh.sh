#!/bin/sh
# A pool on a machine that is reached by ssh: each factory is a transient unit of systemd there.
#
#   giga pool set mini --driver command --max 2 --command /etc/giga/ssh.sh --command builder@mini.example
#
# The machine has `giga`, and the user may start units of its own (`loginctl enable-linger builder`).
# The contract is in docs/pool-drivers.md: everything may be asked twice, so each call first looks what is there.
set -eu

host=$1
call=$2
unit=giga-$GIGA_FACTORY.service

# 255 is ssh's own: the machine is off or cannot be reached. The coordinator tries again later.
remote() {
  ssh -o BatchMode=yes -o ConnectTimeout=15 "$host" "$@" || {
    code=$?
    [ "$code" -ne 255 ] || exit 75
    return "$code"
  }
}

case $call in
start)
  # The credential goes over standard input into a file of mode 0600: on a command line there everybody could read it.
  # GIGA_FACTORY_ARGS is quoted for a shell, which is what ssh runs.
  printf '%s\n' "$GIGA_POOL_TOKEN" | remote "
    set -eu
    if ! systemctl --user --quiet is-active '$unit'; then
      umask 077
      base=\$HOME/giga-pools/$GIGA_FACTORY
      mkdir -p \"\$base\"
      cat > \"\$base/credential\"
      systemd-run --user --quiet --collect --unit='$unit' --property=TimeoutStopSec=60 \
        giga factory run --base \"\$base/base\" --token-file \"\$base/credential\" $GIGA_FACTORY_ARGS
    fi" >&2
  echo "$host/$unit"
  ;;
stop)
  # SIGTERM: the factory hands back what it holds and leaves. What it kept (left.json) is not removed here.
  remote "
    systemctl --user stop '$unit' 2>/dev/null || true
    base=\$HOME/giga-pools/$GIGA_FACTORY
    if [ ! -e \"\$base/base/left.json\" ] || grep -q '\"kept\":\[\]' \"\$base/base/left.json\"; then
      [ -e \"\$base/base/left.json\" ] && rm -rf \"\$base\" || rm -f \"\$base/credential\"
    fi" >&2
  ;;
alive)
  if remote "systemctl --user --quiet is-active '$unit'"; then echo yes; else echo no; fi
  ;;
*)
  echo "$0: no call $call" >&2
  exit 64
  ;;
esac
