#!/bin/sh
# What the emulated machine does after each boot: begin the experiment, watch it go on, or say how it ended.
export PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
kept=/var/lib/emulated
state=/var/lib/ajuste/state/reboots/state.json
mkdir -p $kept

files() {
    sha256sum /boot/grub/grub.cfg /boot/grub/grubenv
    ls /boot/grub
    find /etc/systemd /etc/sysctl.d | sort
}

echo "EMULATED boot $(uname -r) $(cat /proc/cmdline)"
if [ -e $state ]; then
    tail -F /var/lib/ajuste/state/reboots/log &
    while [ -e $state ]; do sleep 1; done
    sleep 30 # the last reboot may be on its way
fi
if [ ! -e $kept/before ]; then
    files > $kept/before.new
    sync
    mv $kept/before.new $kept/before
    sync
fi
if [ ! -e /var/lib/ajuste/state/reboots/last.json ]; then
    # The command is on a disk of its own, one word a line.
    set --
    while IFS= read -r word && [ "$word" != "END" ]; do set -- "$@" "$word"; done < /dev/vdb
    "$@"
    echo "EMULATED code $?"
    [ -e $state ] && exit 0
    sleep 30 # the last reboot may be on its way
fi
files > $kept/after
if cmp $kept/before $kept/after; then echo "EMULATED files as before"; else echo "EMULATED files differ"; fi
tar -cf /dev/vdc -C /var/lib/ajuste data state -C /var/lib emulated
sync
echo "EMULATED end"
systemctl poweroff
