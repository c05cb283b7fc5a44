#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# lint.sh [FILE...] - what the compiler does not check: layering (tools/layers.txt), sizes,
# licences, names, local paths, formatting, mutable globals. Without FILEs: the whole tree.
# One line per finding, "file:line: rule: what"; "note" lines are advice. Exit 1 on a finding.
set -u
cd "$(dirname "$0")/.." || exit 2
: "${B:=.build}" "${CLANG_FORMAT:=clang-format}"
layers=tools/layers.txt
found=$(mktemp) && trap 'rm -f "$found"' EXIT

if [ $# -gt 0 ]; then
	files=$(printf '%s\n' "$@")
else
	files=$(find . .ci -name '.?*' ! -name .ci -prune -o -type f -print 2>/dev/null | sed 's|^\./||' | sort)
fi
pick() { printf '%s\n' "$files" | grep -E "$1" | grep -v '^vmlinux/'; }
c_files=$(pick '\.[ch]$')
text_files=$(pick '\.(c|h|sql|sh|mk|awk|py|md|txt|service|conf|in|yaml)$|^Makefile$')
text_files="$text_files
$(pick '^(tools|tests|\.ci)/[^.]*$' | while read -r f; do
	head -c 2 "$f" | grep -q '#!' && echo "$f"; done)"

# Layering. A folder includes itself, libc and what its line names; a foreign header only
# the folder that claims it. Tests may reach what the folder they test may reach.
layering() {
	awk '
	FNR == NR {
		sub(/#.*/, "")
		if (split($0, side, ":") < 2)
			next
		n = split(side[2], word, " ")
		if (side[1] ~ / only$/) {
			sub(/ only$/, "", side[1])
			for (i = 1; i <= n; i++)
				owner[word[i]] = side[1]
		} else if (side[1] !~ / /) {
			known[side[1]] = 1
			for (i = 1; i <= n; i++)
				allowed[side[1], word[i]] = 1
		}
		next
	}
	function bad(what) { printf "%s:%d: layering: %s\n", FILENAME, FNR, what }
	FNR == 1 {
		n = split(FILENAME, part, "/")
		area = part[1]
		folder = area == "user" ? part[2] : area == "tests" && part[2] == "unit" ? part[3] : ""
		if (area == "user" && !(folder in known))
			bad("folder " folder " is not in tools/layers.txt")
	}
	!match($0, /^[ \t]*#[ \t]*include[ \t]*["<][^">]*/) { next }
	{
		name = substr($0, RSTART, RLENGTH)
		quoted = name ~ /"/
		sub(/^[^"<]*["<]/, "", name)
	}
	!quoted {
		longest = ""
		for (prefix in owner)
			if (index(name, prefix) == 1 && length(prefix) > length(longest))
				longest = prefix
		if (longest != "" && area != "bpf" && folder != "" && folder != owner[longest])
			bad("<" name "> belongs to " owner[longest])
		next
	}
	area == "bpf" {
		if (name !~ /^vmlinux\.h$/ && name !~ /^bpf\/[a-z_.]*\.h$/ && name !~ /^[a-z_]+(\.bpf)?\.h$/)
			bad("\"" name "\" is not of bpf/")
		next
	}
	folder == "" { next }
	{
		if (area == "tests" && name ~ /^(unit|fixture)\//)
			next
		if (area == "tests")
			sub(/^user\//, "", name) # a test that needs what is static in it
		target = name
		sub(/\/.*/, "", target)
		if (name == "assay.skel.h")
			fine = folder == "probe"
		else if (name !~ /\//)
			fine = area != "user"
		else
			fine = target == folder || (folder SUBSEP target) in allowed ||
			       (folder SUBSEP name) in allowed
		if (!fine)
			bad("\"" name "\" is not below " folder)
	}' "$layers" $1
}

# Functions begin and end with a brace in column 0, as clang-format leaves them.
sizes() {
	awk '
	function tell(line, what, lines, soft, hard) {
		if (lines > hard)
			printf "%s:%d: size: %s has %d lines, the limit is %d\n", file, line, what, lines, hard
		else if (lines > soft)
			printf "%s:%d: note: %s has %d lines, aim at %d\n", file, line, what, lines, soft
	}
	function close_file() { if (file != "") tell(last, "the file", last, 600, 800) }
	FNR == 1 { close_file(); file = FILENAME; begin = 0 }
	{ last = FNR }
	/^[a-z].*\(/ || /^[a-z_]+ \**[a-z_0-9]+$/ { head = $0 }
	/^\{/ { begin = FNR }
	/^}/ && begin {
		name = head
		sub(/\(.*/, "", name)
		sub(/.*[ *]/, "", name)
		tell(begin, name "()", FNR - begin + 1, 60, 80)
		begin = 0
	}
	END { close_file() }' $1
}

licences() {
	local file want
	for file in $1; do
		case $file in
		LICENSE* | *.md | *.txt | *.seeds/*) continue ;;
		bpf/*) want='GPL-2.0-only OR BSD-2-Clause' ;;
		*) want='Apache-2.0' ;;
		esac
		head -n 3 "$file" | grep -q "SPDX-License-Identifier: $want" ||
			echo "$file:1: licence: no line SPDX-License-Identifier: $want"
	done
}

# libbpf, its skeletons and CO-RE flavours (x___old) own the double underscore.
names() {
	grep -nHoE '\b[A-Za-z0-9]+(_[A-Za-z0-9]+)*__[A-Za-z0-9]\w*' $1 |
		grep -vE ':(bpf_[a-z_]+|libbpf|btf|ring_buffer|user_ring_buffer|perf_buffer|assay)__' |
		sed -E 's/^([^:]*:[0-9]+):(.*)/\1: names: \2, two underscores are left to libbpf/'
}

# A path that only exists where somebody wrote it: outside the tree or the usual folders.
paths() {
	grep -nHoE "(^|[[:space:]\"'=(\`])(/[a-z][a-z]+/[a-z.]|\.\./[a-z][a-z]+)[^[:space:]\"'\`)]*" $1 |
		grep -vE ":[[:space:]\"'=(\`]*/(proc|sys|dev|etc|usr|run|var|tmp|lib|root|bin|sbin|home|opt|srv|boot|mnt|src|nonexistent)/" |
		while IFS=: read -r file line path; do
			path=${path#[\ \"\'=(\`]}
			first=${path#../} && first=${first%%/*}
			case $path in ../*) [ -e "$first" ] || [ -e "$(dirname "$file")/../$first" ] && continue ;; esac
			echo "$file:$line: paths: $path is outside this tree"
		done
}

formatting() {
	"$CLANG_FORMAT" --version >/dev/null 2>&1 || { echo "$CLANG_FORMAT:0: format: not installed"; return; }
	"$CLANG_FORMAT" --dry-run -Werror --ferror-limit=3 $1 2>&1 |
		sed -nE 's/^([^:]*:[0-9]+):[0-9]+: error: .*/\1: format: run clang-format -i/p' | sort -u
}

# Of what is built: writable objects in .data and .bss, less the ones layers.txt allows.
globals() {
	local allowed object source
	allowed=$(sed -n 's/^globals: *//p' "$layers")
	for object in $(find "$B/user" -name '*.o' 2>/dev/null); do
		source=${object#"$B"/} && source=${source%.o}.c
		[ -e "$source" ] && [ "$object" -nt "$source" ] || continue
		objdump -t "$object" | awk -v source="$source" -v allowed="$allowed" '
			$0 ~ / O \.(data|bss)[.a-z]*\t/ && $0 !~ / O \.data\.rel\.ro/ {
				name = $NF
				sub(/\.[0-9]+$/, "", name)
				if (name !~ /^__/ && index(" " allowed " ", " " name " ") == 0)
					printf "%s:1: globals: %s can be written, pass a struct\n", source, name
			}'
	done
}

[ -n "$c_files" ] && {
	layering "$c_files"
	sizes "$c_files"
	names "$(printf '%s\n' "$c_files" | grep -E '^(user|tests)/')"
	formatting "$c_files"
} >>"$found"
licences "$(printf '%s\n' "$text_files" | sort -u)" >>"$found"
paths "$text_files" >>"$found"
[ $# -gt 0 ] || globals >>"$found"
cat "$found"
! grep -qv ': note: ' "$found"
