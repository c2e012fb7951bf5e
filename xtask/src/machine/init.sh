#!/bin/busybox sh
# The machine's first program, from its initramfs: loads the modules, mounts the disks, and goes on from the root disk.
busybox=/bin/busybox
fail() {
    echo "eyot-machine: $*"
    # No orderly end: the kernel was told to reboot by a fault of its own, which ends QEMU.
    $busybox reboot -f
}
$busybox mount -t proc proc /proc || fail "no /proc"
$busybox mount -t sysfs sysfs /sys || fail "no /sys"
$busybox mount -t devtmpfs devtmpfs /dev || fail "no /dev"
for module in /modules/*.ko; do
    $busybox insmod "$module" || fail "can't load $module"
done
# Disks are found by their labels: which of them comes first is QEMU's business.
root=$($busybox findfs LABEL=eyot-root) || fail "no root disk"
tests=$($busybox findfs LABEL=eyot-tests) || fail "no disk with the tests"
$busybox mount -t ext4 "$root" /root || fail "can't mount the root disk"
$busybox mount -t ext4 -o ro "$tests" /root/mnt || fail "can't mount the disk with the tests"
for tree in proc sys dev; do
    $busybox mount --move /$tree /root/$tree || fail "can't move /$tree"
done
exec $busybox switch_root /root /bin/bash /mnt/tests.sh
