# SPDX-License-Identifier: Apache-2.0
# One log of a test program in, one line per test out: "ok NAME: TEST", "not ok NAME: TEST"
# or "skip NAME: TEST: WHY", then "counts P F S". Reads TAP ("ok 1 - x", "ok 2 # SKIP why",
# "1..N"), the same without numbers, "skip x: why", and cmocka's own format.
# -v name= -v status= (exit status of the program; 124 and 137: timeout) -v limit= (seconds)
function put(kind, text) {
	count[kind]++
	results++
	said = ""
	print kind " " name (text == "" ? "" : ": " text)
}
function clean(text) {
	sub(/^[0-9]+ */, "", text)
	sub(/^- */, "", text)
	gsub(/_/, " ", text)
	return text
}
/^ *\[       OK \] / { put("ok", clean(substr($0, index($0, "]") + 2))); next }
/^ *\[  SKIPPED \] / && !/test\(s\)/ { put("skip", clean(substr($0, index($0, "]") + 2)) ": see its log"); next }
/^ *\[  FAILED  \] / && !/test\(s\)/ {
	text = clean(substr($0, index($0, "]") + 2))
	if (!(text in failed))
		put("not ok", text)
	failed[text] = 1
	next
}
/^ok / {
	text = substr($0, 4)
	at = index(toupper(text), "# SKIP")
	if (at) {
		why = substr(text, at + 6)
		sub(/^ +/, "", why)
		text = clean(substr(text, 1, at - 1))
		sub(/ +$/, "", text)
		# cmocka puts the name there; the reason is what the test printed before.
		if (text == "") {
			text = clean(why)
			why = said
		}
		put("skip", text ": " (why == "" ? "no reason given" : why))
	} else
		put("ok", clean(text))
	next
}
/^not ok / { put("not ok", clean(substr($0, 8))); next }
/^skip / { put("skip", clean(substr($0, 6))); next }
/^1\.\.0 *# *[Ss][Kk][Ii][Pp]/ {
	sub(/^[^#]*# *[A-Za-z]+ */, "")
	put("skip", $0)
	next
}
/^1\.\.[0-9]+/ {
	sub(/^1\.\./, "")
	planned += $1 + 0
	next
}
{ said = $0; sub(/^#+ */, "", said) }
END {
	if (status == 124 || status == 137)
		put("not ok", "no end after " limit " s")
	else if (status > 128)
		put("not ok", "crashed by signal " status - 128)
	else if (results == 0)
		put("not ok", "reported no test, exit status " status)
	else if (status != 0 && !count["not ok"])
		put("not ok", "exit status " status)
	if (results < planned)
		put("not ok", "ended after " results " of " planned " tests")
	print "counts " count["ok"] + 0, count["not ok"] + 0, count["skip"] + 0
}
