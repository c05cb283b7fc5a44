# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Sourced by the scripts a person starts: where the tree is, and packages on demand.
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8
unset MAKEFLAGS MFLAGS

die() {
	echo "$*" >&2
	exit 1
}

# missing_packages PURPOSE... - names from tools/packages that dpkg does not have
missing_packages() {
	local purpose name
	for purpose; do
		for name in $(sed -n "s/^$purpose: *//p" "$root/tools/packages"); do
			dpkg-query -W -f '${db:Status-Status}\n' "$name" 2>/dev/null |
				grep -qx installed || echo "$name"
		done
	done
}

# need_packages PURPOSE... - install what is missing, quietly; says so on one line
need_packages() {
	local names log
	names=$(missing_packages "$@" | sort -u | tr '\n' ' ')
	[ -n "$names" ] || return 0
	command -v apt-get >/dev/null ||
		die "missing: $names- no apt-get here, install them by hand"
	[ "$(id -u)" = 0 ] ||
		die "missing: $names- run this as root, or: apt-get install $names"
	echo "installing: $names" >&2
	log=$(mktemp)
	export DEBIAN_FRONTEND=noninteractive
	# Services that a package brings must not start because of us.
	local policy=/usr/sbin/policy-rc.d made=
	[ -e $policy ] || { printf '#!/bin/sh\nexit 101\n' >$policy && chmod 755 $policy && made=1; }
	# shellcheck disable=SC2086 # names is a list
	{
		# Another apt-get may be at work: wait for it.
		{ apt-get -qy update || { sleep 10 && apt-get -qy update; }; } &&
			apt-get -qy -o DPkg::Lock::Timeout=300 install \
				--no-install-recommends $names
	} >"$log" 2>&1 </dev/null
	local status=$?
	[ -z "$made" ] || rm -f $policy
	[ $status = 0 ] || {
		tail -n 15 "$log" >&2
		die "apt-get could not install them; the whole output is in $log"
	}
	rm -f "$log"
}
