# The node of the cluster, and its servers: the first process of namespaces of its own (mount, network, process,
# ipc, uts, control group), which all end with it. It ends when its standard input does.
#
# FOLDER is kept from one start to the next, PARTS has the programs, IMAGES the archives of images, DATABASE the programs of
# PostgreSQL. It says `ready` once, and then takes orders at FOLDER/control (`stop NAME`, `start NAME`, `kill CONTAINER`,
# `lose node`, `find node`), each answered by a line at FOLDER/answer. FOLDER/database has the address of a database.
set -e
export PATH="$PARTS/bin:$PARTS/usr/bin:$PARTS/usr/sbin:$PATH"
# At the port of its service, whose address the node has: nothing else leads Pods from the one to the other.
API=https://10.250.0.1:443
NODE=eyot-node

isolate() {
    hostname "$NODE"
    mount --make-rprivate /
    # Everything that writes to a fixed place writes to one that goes with this.
    for place in /run /var/lib /var/log; do mount -t tmpfs tmpfs "$place"; done
    mkdir -p /run/lock
    umount -R /sys/fs/cgroup
    mount -t tmpfs tmpfs /sys/fs/cgroup
    for controller in $CONTROLLERS; do
        mkdir "/sys/fs/cgroup/$controller"
        mount -t cgroup -o "$controller" cgroup "/sys/fs/cgroup/$controller"
    done
    # The kubelet writes these for the whole host, unless they read so already.
    for setting in vm/overcommit_memory=1 vm/panic_on_oom=0 kernel/panic=10 kernel/panic_on_oops=1 \
        kernel/keys/root_maxkeys=1000000 kernel/keys/root_maxbytes=25000000; do
        file="$FOLDER/settings/$(echo "${setting%=*}" | tr / _)"
        echo "${setting#*=}" >"$file"
        mount --bind "$file" "/proc/sys/${setting%=*}"
    done
    mount --make-rshared /
    ip link set lo up
    ip address add 10.252.0.1/32 dev lo
    # A pair whose other end leads nowhere: some kernels have no device of the kind `dummy`.
    ip link add eth0 type veth peer name eth0-end
    ip link set eth0-end up
    ip address add 10.250.0.1/24 dev eth0
    ip link set eth0 up
    ip route add default dev eth0
    echo 1 >/proc/sys/net/ipv4/ip_forward
}

# Calls until it succeeds, for two minutes.
await() {
    tries=0
    until "$@" >/dev/null 2>&1; do
        tries=$((tries + 1))
        [ "$tries" -lt 600 ] || return 1
        sleep 0.2
    done
}

kubectl() {
    command kubectl --request-timeout=5s --cache-dir=/run/kubectl "$@"
}

# Makes a certificate of the cluster's authority: its file, its subject.
certificate() {
    openssl req -newkey rsa:2048 -nodes -subj "$2" -keyout "$1.key" -out "$1.request"
    printf 'subjectAltName=IP:127.0.0.1,IP:10.250.0.1,IP:10.252.0.1,DNS:%s\n' "$NODE" >"$1.names"
    openssl x509 -req -in "$1.request" -CA authority.crt -CAkey authority.key -CAcreateserial -days 365 \
        -extfile "$1.names" -out "$1.crt"
}

certificates() {
    cd "$FOLDER/certificates"
    openssl req -x509 -newkey rsa:2048 -nodes -days 365 -subj /CN=eyot-test -keyout authority.key -out authority.crt
    openssl genrsa -out accounts.key 2048
    certificate server /CN=eyot-server
    certificate admin /O=system:masters/CN=admin
    certificate kubelet "/O=system:nodes/CN=system:node:$NODE"
    certificate manager /CN=system:kube-controller-manager
    certificate scheduler /CN=system:kube-scheduler
    for user in admin kubelet manager scheduler; do
        cat >"$FOLDER/$user.kubeconfig" <<END
apiVersion: v1
kind: Config
current-context: test
clusters: [{ name: test, cluster: { server: "$API", certificate-authority: $PWD/authority.crt } }]
users: [{ name: $user, user: { client-certificate: $PWD/$user.crt, client-key: $PWD/$user.key } }]
contexts: [{ name: test, context: { cluster: test, user: $user, namespace: sandboxes } }]
END
    done
    cd "$FOLDER"
}

configure() {
    cat >containerd.toml <<END
version = 2
root = "$FOLDER/containerd"
state = "/run/containerd"
[grpc]
  address = "/run/containerd/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "eyot.local/pause:1"
  # Root may not lower this number on every host.
  restrict_oom_score_adj = true
  disable_apparmor = true
  disable_hugetlb_controller = true
  tolerate_missing_hugetlb_controller = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "$PARTS/usr/lib/cni"
    conf_dir = "$FOLDER/network"
END
    cat >network/bridge.conflist <<END
{ "cniVersion": "0.4.0", "name": "eyot", "plugins": [{
  "type": "bridge", "bridge": "pods", "isGateway": true, "hairpinMode": true,
  "ipam": { "type": "host-local", "ranges": [[{ "subnet": "10.251.0.0/16" }]], "routes": [{ "dst": "0.0.0.0/0" }] }
}] }
END
    cat >kubelet.yaml <<END
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication: { anonymous: { enabled: false }, x509: { clientCAFile: $FOLDER/certificates/authority.crt }, webhook: { enabled: false } }
authorization: { mode: AlwaysAllow }
tlsCertFile: $FOLDER/certificates/kubelet.crt
tlsPrivateKeyFile: $FOLDER/certificates/kubelet.key
cgroupDriver: cgroupfs
failSwapOn: false
makeIPTablesUtilChains: false
enforceNodeAllocatable: []
oomScoreAdj: 0
maxPods: 250
evictionHard: { memory.available: 100Mi, nodefs.available: 1%, imagefs.available: 1% }
imageGCHighThresholdPercent: 100
END
}

# Runs a program of the database, which refuses root.
as_nobody() {
    setpriv --reuid=nobody --regid=nogroup --clear-groups "$@"
}

# In memory. Pods and the node reach it with a password.
make_database() {
    install -d -o nobody -g nogroup -m 0700 /run/database
    echo eyot-test >/run/password
    cd /run
    as_nobody "$DATABASE/initdb" --pgdata=/run/database --username=eyot --pwfile=/run/password --auth=scram-sha-256 \
        --encoding=UTF8 --locale=C --no-sync
    echo "host all all 10.250.0.0/15 scram-sha-256" >>/run/database/pg_hba.conf
    echo "CREATE DATABASE eyot" | as_nobody "$DATABASE/postgres" --single -D /run/database postgres
    cd "$FOLDER"
    echo postgresql://eyot:eyot-test@10.250.0.1:5432/eyot >database
}

command_of() {
    case "$1" in
    database) echo "setpriv --reuid=nobody --regid=nogroup --clear-groups $DATABASE/postgres -D /run/database \
        -c listen_addresses=10.250.0.1 -c unix_socket_directories= -c fsync=off -c dynamic_shared_memory_type=mmap" ;;
    containerd) echo "containerd --config containerd.toml" ;;
    etcd) echo "etcd --data-dir /run/etcd" ;;
    server) echo "kube-apiserver --etcd-servers=http://127.0.0.1:2379 --advertise-address=10.250.0.1 --secure-port=443 \
        --client-ca-file=certificates/authority.crt --tls-cert-file=certificates/server.crt \
        --tls-private-key-file=certificates/server.key --kubelet-client-certificate=certificates/admin.crt \
        --kubelet-client-key=certificates/admin.key --kubelet-preferred-address-types=InternalIP \
        --service-account-issuer=https://eyot.test --service-account-key-file=certificates/accounts.key \
        --service-account-signing-key-file=certificates/accounts.key --service-cluster-ip-range=10.252.0.0/24 \
        --authorization-mode=Node,RBAC" ;;
    manager) echo "kube-controller-manager --kubeconfig=manager.kubeconfig --authentication-kubeconfig=manager.kubeconfig \
        --authorization-kubeconfig=manager.kubeconfig --service-account-private-key-file=certificates/accounts.key \
        --root-ca-file=certificates/authority.crt --use-service-account-credentials --leader-elect=false \
        --flex-volume-plugin-dir=$FOLDER/plugins" ;;
    scheduler) echo "kube-scheduler --kubeconfig=scheduler.kubeconfig --leader-elect=false" ;;
    kubelet) echo "kubelet --config=kubelet.yaml --kubeconfig=kubelet.kubeconfig --root-dir=$FOLDER/kubelet \
        --container-runtime=remote --container-runtime-endpoint=unix:///run/containerd/containerd.sock \
        --node-ip=10.250.0.1 --hostname-override=$NODE --cni-conf-dir=network --cni-bin-dir=$PARTS/usr/lib/cni --volume-plugin-dir=$FOLDER/plugins" ;;
    esac
}

start() {
    # Split at blanks on purpose; the input is the first process's own.
    $(command_of "$1") >>"log/$1.log" 2>&1 </dev/null 3>&- &
    echo $! >"/run/$1.process"
}

# Kills a server. The database ends its own processes first, and saves nothing either.
stop() {
    process=$(cat "/run/$1.process")
    signal=KILL
    if [ "$1" = database ]; then signal=QUIT; fi
    kill -"$signal" "$process" || return 1
    wait "$process" || true
}

await_database() {
    await "$DATABASE/pg_isready" --host=10.250.0.1
}

import_images() {
    await ctr version
    for archive in "$IMAGES"/*.tar; do ctr --namespace k8s.io images import "$archive"; done
}

# As when its power fails: the network of Pods goes first, so that nothing of it says goodbye.
lose_node() {
    # An order is a condition, in which the shell would go on after a failure.
    ip link set pods down && stop kubelet && pkill -KILL containerd-shim && stop containerd || return 1
    # The processes of Pods, in control groups of theirs.
    for list in $(find /sys/fs/cgroup/pids/kubepods -name cgroup.procs); do
        for process in $(cat "$list"); do kill -KILL "$process" || true; done
    done
}

find_node() {
    ip link set pods up && start containerd && start kubelet
}

obey() {
    case "$1 $2" in
    "stop server" | "stop kubelet" | "stop database") stop "$2" ;;
    "start server") start server && await kubectl get --raw /readyz ;;
    "start kubelet") start kubelet ;;
    "start database") start database && await_database ;;
    kill*) ctr --namespace k8s.io tasks kill --signal SIGKILL "$2" ;;
    "lose node") lose_node ;;
    "find node") find_node ;;
    *) return 1 ;;
    esac
}

cd "$FOLDER"
rm -rf containerd kubelet network settings log certificates plugins control answer database
mkdir -p containerd kubelet network settings log certificates plugins
mkfifo control answer
trap 'exit 0' TERM
# A job in the background has no input but what it is given.
exec 4<&0 </dev/null
(cat <&4 >/dev/null || true; kill -TERM 1) &
exec 4<&-
{
    isolate
    certificates
    configure
    export CONTAINERD_ADDRESS=/run/containerd/containerd.sock KUBECONFIG="$FOLDER/admin.kubeconfig"
    start containerd
    start etcd
    start server
    make_database
    start database
    import_images
    await kubectl get --raw /readyz
    # Their rights are made by the server when it begins.
    await kubectl get clusterrole system:kube-scheduler
    start manager
    start scheduler
    start kubelet
    await_database
    kubectl create namespace sandboxes
    await kubectl get serviceaccount default --namespace sandboxes
    await kubectl wait --timeout=5s --for=condition=Ready "node/$NODE"
} >log/node.log 2>&1
echo ready
exec 3<>control
while read -r verb name <&3; do
    if obey "$verb" "$name" >>log/node.log 2>&1; then echo done >answer; else echo "not done" >answer; fi
done
