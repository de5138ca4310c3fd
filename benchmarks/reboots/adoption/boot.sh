#!/bin/sh
# What the emulated machine does in each of three boots: adopt two winners; see them set, and undo them; see them gone.
set -u
cd "$(dirname "$0")"
kept=/var/lib/emulated/adoption
mkdir -p $kept
boot=$(($(cat $kept/boot 2>/dev/null || echo 0) + 1))
echo $boot >$kept/boot

step() { # NAME COMMAND...: what a command says, its exit code, and when it began and ended
    name=$1
    shift
    began=$(cut -d' ' -f1 /proc/uptime)
    echo "ADOPTION $boot $began $name"
    "$@" >"$kept/$boot-$name.txt" 2>&1
    echo "$name $? $began $(cut -d' ' -f1 /proc/uptime)" >>"$kept/$boot-steps.txt"
}

values() { cat /proc/sys/vm/dirty_background_ratio /sys/kernel/mm/transparent_hugepage/enabled; }
files() { find /etc/sysctl.d /etc/systemd/system /usr/local/sbin /var/lib/ajuste/adopted -name '*ajuste*' -o -name '*.journal' -o -path '*adopted/*.json' | xargs -r ls -l; }
shows() { for file in /etc/sysctl.d/*ajuste* /etc/systemd/system/ajuste-*.service /usr/local/sbin/ajuste-*; do [ -e "$file" ] && cat "$file"; done; }
systemd() {
    systemctl --no-pager status systemd-sysctl
    journalctl --no-pager -b -o short-monotonic -u systemd-sysctl -u 'ajuste-*' -u emulated
    systemctl --no-pager show systemd-sysctl emulated -p Id -p Result -p ExecMainStartTimestampMonotonic
    units=$(ls /etc/systemd/system | grep '^ajuste-')
    for unit in $units; do systemctl --no-pager show "$unit" -p Id -p Result -p ExecMainStartTimestampMonotonic; done
    systemctl --no-pager --failed
}
live() { # NAME SETTING METRIC
    ajuste live --name "$1" --set "$2" --metric "$3" --slice 10s --washout 5s --for 10m --min-effect 10% --guard "$1 < 2GB" --adopt \
        --probation 30s 2>&1 | tee /dev/ttyS0
}
runs() { sed -n 's/.*"run":"\([^"]*\)".*/\1/p' /var/lib/ajuste/adopted/*.json; }

echo "ADOPTION boot $boot: $(values | tr '\n' ' ')"
if [ $boot = 1 ]; then
    # The administrator's own value, in the file that sysctl.d reads last.
    echo 'vm.dirty_background_ratio = 20' >>/etc/sysctl.conf
    systemctl restart systemd-sysctl
fi
python3 reader.py $kept/$boot-seen.json &
reader=$!
python3 load.py &
load=$!
step values-before values
step systemd systemd
case $boot in
1)
    step dirty live dirty vm.dirty_background_ratio=20,2 'dirty,B,lower=proc:meminfo.Dirty'
    step huge live huge thp.enabled=always,never 'huge,B,lower,difference=proc:meminfo.AnonHugePages'
    step shows shows
    ;;
2)
    step plan ajuste plan study.toml
    step files-before files
    step status-before ajuste live status
    step doctor ajuste doctor
    for run in $(runs); do
        step "dry-$run" ajuste restore --run "$run" --dry-run
        step "undo-$run" ajuste restore --run "$run"
    done
    ;;
esac
step values values
step files files
step status ajuste live status
kill $load $reader
wait $reader
cat $kept/$boot-steps.txt
sync
if [ $boot != 3 ]; then
    systemctl reboot
    sleep 1000
fi
