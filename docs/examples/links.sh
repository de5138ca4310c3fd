# links.sh PROTOCOL LINKS SECONDS: iperf3 over one or two links, by TCP or Multipath TCP.
set -e
protocol=$1 links=$2 seconds=$3

link() { # number, rate, delay
    ip link add "path$1" netns sender type veth peer name "path$1" netns receiver
    for end in sender:1 receiver:2; do
        name=${end%:*}
        ip -n "$name" address add "10.0.$1.${end#*:}/24" dev "path$1"
        ip -n "$name" link set "path$1" gso_max_segs 1 up
        tc -n "$name" qdisc add dev "path$1" root netem rate "$2" delay "$3" limit 64
    done
}

ip netns add sender
ip netns add receiver
link 1 10mbit 10ms
[ "$links" = 1 ] || link 2 5mbit 30ms
if [ "$protocol" = mptcp ]; then
    start="mptcpize run"
    ip -n sender mptcp limits set add_addr_accepted 2 subflows 2
    ip -n receiver mptcp limits set add_addr_accepted 2 subflows 2
    [ "$links" = 1 ] || ip -n receiver mptcp endpoint add 10.0.2.2 signal
fi
ip netns exec receiver $start iperf3 --version4 --server --one-off > /tmp/server.log &
until ip netns exec receiver grep -q ':1451 .* 0A ' /proc/net/tcp; do sleep 0.01; done
ip netns exec sender $start iperf3 --version4 --client 10.0.1.2 --time "$seconds" --json
ip netns exec sender awk '$1 == "path2:" { second = $10 } END { print "second=" second + 0 }' /proc/net/dev >&2
