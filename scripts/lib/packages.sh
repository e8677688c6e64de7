# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Debian's packages: which ones are needed, which are missing, how they come here. To be sourced.
# A caller sets: deps (the folder .deps), with_tests (1 or 0) and has sourced steps.sh.

# What a build needs.
build_packages=(
	gcc libc6-dev make meson ninja-build pkg-config
	autoconf automake libtool dpkg-dev patch xz-utils debian-archive-keyring gpgv
	protobuf-compiler nanopb python3-protobuf libnanopb-dev
	libnghttp2-dev libyaml-dev libseccomp-dev
	libcurl4-openssl-dev libcjson-dev libnftables-dev zlib1g-dev
)

# What the tests, the linters and the fuzz targets need on top. libiperf0 is the library of iperf3, see below,
# those of the next line are nsd's.
test_packages=(
	clang-14 clang-tidy-14 clang-format-14 libclang-rt-14-dev llvm-14 libcmocka-dev
	iproute2 nftables iptables tcpdump curl openssl bind9-dnsutils jq socat libiperf0
	libevent-2.1-7 libfstrm0 libprotobuf-c1
	python3 python3-venv shellcheck mandoc valgrind gdb strace git
)

# Test tools whose installation could start a service: unpacked into .deps/unpacked, reached by .deps/bin.
unpacked_packages=(iperf3 nsd prometheus)

# Names of the packages wanted in this run, one a line.
packages_wanted() {
	printf '%s\n' "${build_packages[@]}"
	((with_tests)) && printf '%s\n' "${test_packages[@]}"
	return 0
}

# Names of the packages wanted and not installed, one a line. What another release than Debian 12 does not
# have at all (packages_skip_unknown wrote it down) is left out.
packages_missing() {
	local unknown=$deps/unknown-packages
	[[ -f $unknown ]] || unknown=/dev/null
	# shellcheck disable=SC2016,SC2046 # the format is dpkg-query's; names have no blanks
	comm -23 <(packages_wanted | sort) \
		<({
			dpkg-query -W -f='${Package} ${db:Status-Status}\n' $(packages_wanted) 2>/dev/null |
				sed -n 's/ installed$//p' || true
			cat "$unknown"
		} | sort -u)
}

# Names of the packages to be unpacked that are not there, one a line.
unpacked_missing() {
	local name
	((with_tests)) || return 0
	for name in "${unpacked_packages[@]}"; do
		[[ -e $deps/unpacked/.done-$name ]] || printf '%s\n' "$name"
	done
}

# as_root COMMAND...: runs a command with root's rights.
as_root() {
	if ((EUID == 0)); then
		"$@"
	else
		sudo -- "$@"
	fi
}

# Ends the script unless as_root can work. $*: what the rights are for.
need_root() {
	if ((EUID != 0)) && ! command -v sudo >/dev/null; then
		die "not root and no sudo here: run as root once, to install: $*"
	fi
}

# apt_get ARGUMENT...: the machine's apt-get, asking nothing, waiting for another one to finish.
apt_get() {
	as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=300 "$@"
}

# packages_skip_unknown NAME...: on another release: writes those that it does not have to .deps/unknown-packages.
packages_skip_unknown() {
	comm -23 <(printf '%s\n' "$@" | sort) \
		<(apt-cache policy "$@" | awk '/^[^ ]/ { name = $1 } /Candidate: [^(]/ { sub(":$", "", name); print name }' | sort) \
		>>"$deps/unknown-packages"
}

# starts_service DEB: true if its first installation would start a service (by the scripts that debhelper writes).
starts_service() {
	dpkg-deb --ctrl-tarfile "$1" | tar -xO ./postinst 2>/dev/null |
		grep -Eq '^[^#]*(invoke-rc\.d|deb-systemd-invoke +("?\$_dh_action|start))'
}

# packages_fetch NAME...: downloads what is to be installed into .deps/tmp/archives; fails if a new package among
# it would start a service.
packages_fetch() {
	local archives=$deps/tmp/archives new name deb
	mkdir -p "$archives/partial"
	apt_get -o Dir::Cache::archives="$archives" install --no-install-recommends --download-only "$@" || return 1
	new=$(apt-get -s install --no-install-recommends "$@" | awk '/^Inst / && $3 !~ /^\[/ { print $2 }')
	for name in $new; do
		for deb in "$archives/${name%%:*}"_*.deb; do
			if starts_service "$deb"; then
				echo "package $name would start a service: it belongs into unpacked_packages"
				return 1
			fi
		done
	done
}

# packages_try NAME...: installs packages, none of which may start a service.
packages_try() {
	packages_fetch "$@" &&
		apt_get -o Dir::Cache::archives="$deps/tmp/archives" install --no-install-recommends "$@"
}

# packages_install NAME...: the same; if that fails, once more with fresh package lists.
packages_install() {
	packages_try "$@" && return 0
	packages_refresh
	packages_try "$@"
}

# packages_refresh: ends an installation that was broken off and renews the machine's package lists; one broken
# source among several is no reason to stop.
packages_refresh() {
	as_root env DEBIAN_FRONTEND=noninteractive dpkg --configure -a
	apt_get update || true
}

# unpack_package NAME: its files under .deps/unpacked, its programs linked from .deps/bin.
unpack_package() {
	local name=$1 dir=$deps/tmp/unpack-$1 program
	rm -rf "$dir"
	mkdir -p "$dir" "$deps/unpacked" "$deps/bin"
	cd "$dir"
	apt-get -q download "$name" || { packages_refresh && apt-get -q download "$name"; }
	dpkg-deb -x "$dir"/*.deb "$deps/unpacked"
	for program in $(dpkg-deb -c "$dir"/*.deb | awk '$6 ~ /\/s?bin\/./ { print $6 }'); do
		ln -sfn "../unpacked/${program#./}" "$deps/bin/${program##*/}"
	done
	: >"$deps/unpacked/.done-$name"
}
