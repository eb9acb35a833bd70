#!/usr/bin/env bash
# Builds a virtual machine like those of users: Debian 13 with systemd, cgroup v2 and containerd from Debian's packages.
# usage: build-machine.sh 1.7|2 FOLDER
# 1.7: containerd, runc and the CNI plugins are from Debian 13. 2: they are from Debian's unstable release, the rest from Debian 13.
# Writes disk.img (ext4), vmlinuz, initrd.img and the client's ssh key to FOLDER.
set -euo pipefail
version=$1 folder=$2
mkdir -p "$folder"
root=$folder/root
trap 'rm -rf "$root"' EXIT
rm -rf "$root"

mirror=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' 2>/dev/null | grep '/debian/\?$' | head -n 1 || true)
[ -n "$mirror" ] || {
  echo "the sources of apt contain no Debian mirror, which is needed to build the virtual machine" >&2
  exit 1
}
keys=/usr/share/keyrings/debian-archive-keyring.gpg
echo "deb [signed-by=$keys] $mirror trixie main" >"$folder/sources.list"
[ "$version" = 1.7 ] || echo "deb [signed-by=$keys] $mirror sid main" >>"$folder/sources.list"
cat >"$folder/preferences" <<'PREFERENCES'
Package: *
Pin: release n=sid
Pin-Priority: 100

Package: containerd runc containernetworking-plugins
Pin: release n=sid
Pin-Priority: 990
PREFERENCES

packages=(
  systemd-sysv dbus udev linux-image-cloud-amd64 initramfs-tools zstd
  openssh-server iproute2 nftables conntrack iptables procps kmod ca-certificates
  containerd runc containernetworking-plugins busybox-static catatonit kubernetes-client socat
)
# Expired package lists are accepted, because a mirror may serve an old snapshot.
# The initramfs contains only the kernel modules for the disk, because unpacking it on an emulated processor is slow.
mmdebstrap --quiet --mode=root --variant=apt --format=directory \
  --aptopt='APT::Install-Recommends "false"' --aptopt='Acquire::Languages "none"' \
  --aptopt='Acquire::Check-Valid-Until "false"' --aptopt='Acquire::Check-Date "false"' \
  --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
  --setup-hook='mkdir -p "$1/etc/apt/preferences.d" "$1/etc/initramfs-tools/conf.d"' \
  --setup-hook="cp '$folder/preferences' \"\$1/etc/apt/preferences.d/lifepod-machine\"" \
  --setup-hook='printf "MODULES=list\nCOMPRESS=zstd\nBUSYBOX=n\n" >"$1/etc/initramfs-tools/conf.d/lifepod-machine"' \
  --setup-hook='printf "virtio_pci\nvirtio_blk\next4\n" >"$1/etc/initramfs-tools/modules"' \
  --include="$(IFS=,; echo "${packages[*]}")" \
  trixie "$root" "$folder/sources.list" >"$folder/build.log" 2>&1 || {
  tail -n 5 "$folder/build.log" >&2
  exit 1
}

# ssh logs in as root with this key. The virtual machine's network only allows ssh from the host's loopback.
ssh-keygen -q -t ed25519 -N '' -C lifepod-machine -f "$folder/key" <<<y >/dev/null
install -D -m 600 "$folder/key.pub" "$root/root/.ssh/authorized_keys"
printf 'UseDNS no\nMaxSessions 100\n' >"$root/etc/ssh/sshd_config.d/lifepod-machine.conf"
echo machine >"$root/etc/hostname"
printf '127.0.0.1 localhost machine\n' >"$root/etc/hosts"
printf 'nameserver 10.0.2.3\n' >"$root/etc/resolv.conf"
printf '/dev/vda / ext4 rw 0 1\n' >"$root/etc/fstab"
printf '[Match]\nName=eth0\n[Network]\nAddress=10.0.2.15/24\nGateway=10.0.2.2\n' >"$root/etc/systemd/network/20-eth0.network"
cat >"$root/etc/systemd/system/machine-ready.service" <<'UNIT'
[Unit]
After=ssh.service
[Service]
Type=oneshot
ExecStart=/bin/echo machine-ready
StandardOutput=file:/dev/ttyS0
[Install]
WantedBy=multi-user.target
UNIT
chroot "$root" systemctl --quiet enable systemd-networkd machine-ready
# Tests start containerd themselves. The timers and disk checks are masked, because they only cost time.
chroot "$root" systemctl --quiet disable containerd
chroot "$root" systemctl --quiet mask apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer \
  e2scrub_reap.service fstrim.timer systemd-networkd-wait-online.service systemd-timesyncd.service

cp "$(ls "$root"/boot/vmlinuz-* | tail -n 1)" "$folder/vmlinuz"
cp "$(ls "$root"/boot/initrd.img-* | tail -n 1)" "$folder/initrd.img"
rm -rf "$root"/boot/* "$root"/var/cache/apt/* "$root"/var/lib/apt/lists/*
truncate -s 6G "$folder/disk.img"
mke2fs -q -t ext4 -E lazy_itable_init=1,lazy_journal_init=1 -d "$root" "$folder/disk.img"
