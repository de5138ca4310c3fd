# lossy.sh RATE DELAY LOSS SECONDS: iperf3 over a link of that rate, with the delay in each direction, that loses packets
# on the way to the receiver.
set -e
ip netns add sender
ip netns add receiver
ip link add path netns sender type veth peer name path netns receiver
for end in sender:1 receiver:2; do
    name=${end%:*}
    ip -n "$name" address add "10.0.1.${end#*:}/24" dev path
    ip -n "$name" link set path gso_max_segs 1 up
done
tc -n sender qdisc add dev path root netem rate "$1" delay "$2" loss "$3" limit 1000
tc -n receiver qdisc add dev path root netem delay "$2" limit 1000
ip netns exec receiver iperf3 --version4 --server --one-off > /tmp/server.log &
until ip netns exec receiver grep -q ':1451 .* 0A ' /proc/net/tcp; do sleep 0.01; done
ip netns exec sender iperf3 --version4 --client 10.0.1.2 --time "$4" --json
