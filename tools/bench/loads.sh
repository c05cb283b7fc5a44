# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034 # target is the caller's
# Sourced by the benchmarks: load_NAME FOLDER PORT SECONDS starts a server as Debian ships
# it on a loopback port and a load that keeps its connections. Sets target to the server's
# first process and adds what it started to pids.

started() { pids="$pids $!"; }
# until_listening PORT
until_listening() {
	local tries
	for ((tries = 0; tries < 300; tries++)); do
		(exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null && return
		sleep 0.1
	done
	echo "nothing listens on port $1"
	return 1
}

redis_server() { # FOLDER PORT
	redis-server --port "$2" --save '' --daemonize no --dir "$1" &
	started
	target=$!
	until_listening "$2" || return
	redis-benchmark -p "$2" -t set -r 200000 -n 400000 -P 16 -q
}
load_redis() {
	redis_server "$1" "$2" || return
	redis-benchmark -p "$2" -t get -r 200000 -c 20 -n 2000000000 -q &
	started
}
load_redis-pipelined() {
	redis_server "$1" "$2" || return
	redis-benchmark -p "$2" -t get -r 200000 -c 20 -P 16 -n 2000000000 -q &
	started
}

load_postgresql() {
	local bin
	bin=$(echo /usr/lib/postgresql/*/bin | awk '{ print $NF }')
	mkdir "$1/pg" && chown postgres "$1/pg" && chmod 711 "$1"
	# setpriv and not su: it becomes the server, whose process id we want.
	local as=(setpriv --reuid postgres --regid postgres --clear-groups)
	"${as[@]}" "$bin/initdb" -D "$1/pg" -A trust -N || return
	"${as[@]}" "$bin/postgres" -D "$1/pg" -p "$2" -k "$1/pg" -h 127.0.0.1 &
	started
	target=$!
	until_listening "$2" || return
	pgbench -h 127.0.0.1 -p "$2" -U postgres -i -s 20 -q postgres || return
	pgbench -h 127.0.0.1 -p "$2" -U postgres -S -n -c 8 -j 2 -T "$3" postgres &
	started
}

load_mariadb() {
	mkdir "$1/my" && chown nobody "$1/my" && chmod 711 "$1"
	mariadb-install-db --no-defaults --datadir="$1/my" --user=nobody \
		--auth-root-authentication-method=normal || return
	mariadbd --no-defaults --user=nobody --datadir="$1/my" --port="$2" \
		--bind-address=127.0.0.1 --socket="$1/my/socket" --skip-grant-tables &
	started
	target=$!
	until_listening "$2" || return
	local to=(--no-defaults --protocol=tcp -h 127.0.0.1 -P "$2" -u root)
	mariadb "${to[@]}" -e 'create database app; use app;
		create table t (id int primary key, c char(60));
		insert into t select seq, repeat("x", 60) from seq_1_to_100000;' || return
	mariadb-slap "${to[@]}" --create-schema=app --no-drop --concurrency=8 \
		--query='select c from t where id = 4711' --number-of-queries=2000000000 &
	started
}

load_nginx() {
	head -c 1000 /dev/zero | tr '\0' x >"$1/index.html" && chmod 711 "$1"
	cat >"$1/nginx.conf" <<-END
		daemon off; worker_processes 1; pid $1/nginx.pid; error_log $1/nginx.log;
		events { worker_connections 256; }
		http { access_log off; keepalive_requests 2000000000;
		server { listen 127.0.0.1:$2; root $1; } }
	END
	nginx -c "$1/nginx.conf" -p "$1" &
	started
	target=$!
	until_listening "$2" || return
	wrk -t 1 -c 16 -d "$3" "http://127.0.0.1:$2/index.html" &
	started
}
