#!/bin/sh
# A pool of cloud machines, one for each factory, by the command line of Google Cloud. Others look alike.
#
#   giga pool set gpu --driver command --max 4 --start-timeout 15m --coordinator-url https://giga.example \
#     --command /etc/giga/cloud.sh --command a2-highgpu-1g --command us-central1-a
#
# The image (`giga-factory`) has `giga` and a unit that runs `/etc/giga/start` at boot. The contract is in
# docs/pool-drivers.md: everything may be asked twice, so each call first looks what is there.
set -eu

machine=$1
zone=$2
call=$3
# Names of machines have small letters only, and factories of one pool differ in more than that.
name=giga-$(printf %s "$GIGA_FACTORY" | tr 'A-Z._' 'a-z--')

exists() {
  found=$(gcloud compute instances list --filter="name=$name AND zone:$zone" --format='value(name)')
  [ "$found" = "$name" ]
}

case $call in
start)
  if ! exists; then
    # A file of our own for what the machine is told: arguments of commands can be read by others on this host.
    script=$(mktemp)
    trap 'rm -f "$script"' EXIT
    cat > "$script" <<END
#!/bin/sh
export GIGA_POOL_TOKEN='$GIGA_POOL_TOKEN'
exec setpriv --reuid=giga --regid=giga --init-groups giga factory run --base /var/lib/giga/base $GIGA_FACTORY_ARGS
END
    gcloud compute instances create "$name" --zone="$zone" --machine-type="$machine" --image-family=giga-factory \
      --maintenance-policy=TERMINATE --metadata-from-file=startup-script="$script" >&2
  fi
  echo "$zone/$name"
  ;;
stop)
  # The factory has left by now, or never came. Work that is nowhere else would be on its disk (left.json): keep the disk
  # (--keep-disks=all) where that matters to you.
  if exists; then
    gcloud compute instances delete "$name" --zone="$zone" --quiet >&2
  fi
  ;;
alive)
  state=$(gcloud compute instances list --filter="name=$name AND zone:$zone" --format='value(status)')
  case $state in
  PROVISIONING | STAGING | RUNNING) echo yes ;;
  *) echo no ;;
  esac
  ;;
*)
  echo "$0: no call $call" >&2
  exit 64
  ;;
esac
