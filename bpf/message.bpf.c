// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Sends on connections that this side opened, received bytes on those it accepted: a
 * response says nothing that the request did not. A position is a count of bytes since
 * the stream began, so it does not depend on when we began to look; for TCP the kernel
 * counts, for AF_UNIX we do and therefore have to see an empty queue once.
 */
#include "bpf/message.bpf.h"

#define AF_UNIX_FAMILY	  1
#define AF_INET_FAMILY	  2
#define AF_INET6_FAMILY	  10
#define SOCK_STREAM_TYPE  1
#define MSG_PEEK_FLAG	  2
#define RCV_SHUTDOWN_FLAG 1
#define PROTOCOL_TCP	  6

struct connection {
	__u64 source, target; /* of the stream from here, of the one to here */
	__u64 passed;	      /* AF_UNIX: bytes of the client's stream */
	__u32 role;
	__u32 is_counted; /* AF_UNIX, active: @passed is right */
};

/*
 * AF_UNIX: bytes that an accepted socket has received, by its cookie, for the other end
 * to go on from. Programs may read the other end of a socket but not its storage.
 */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, __u64);
	__type(value, __u64);
} unix_passed SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct connection);
} connections SEC(".maps");

/*
 * The number of a stream's first byte. snd_una - bytes_acked is that of the SYN where
 * the SYN was ours and has been counted, else of the byte behind it: so this tells who
 * opened the connection as well.
 */
static __always_inline bool tcp_learn(struct connection *connection,
				      const struct tcp_sock *tcp)
{
	__u32 counted = tcp->snd_una - (__u32)tcp->bytes_acked;
	__u32 first = tcp->snd_nxt - (__u32)(tcp->bytes_sent - tcp->bytes_retrans);

	if (connection->role)
		return true;
	if (first != counted && first != counted + 1)
		return false;
	connection->source = first;
	connection->target = (__u32)(tcp->rcv_nxt - (__u32)tcp->bytes_received);
	connection->role = first == counted ? ROLE_PASSIVE : ROLE_ACTIVE;
	return true;
}

static __always_inline struct tcp_end *tcp_end_of(__u64 sk)
{
	return bpf_map_lookup_elem(&tcp_ends, &sk);
}

/* Memory of sockets is used again: what stood there before goes with the first look. */
static __always_inline bool tcp_known(struct connection *connection, struct sock *sk,
				      const struct tcp_sock *tcp)
{
	__u64 at = (__u64)sk;

	if (connection->role)
		return true;
	if (!tcp_learn(connection, tcp)) {
		bpf_map_delete_elem(&tcp_ends, &at);
		return false;
	}
	struct tcp_end end = { .source = connection->source,
			       .target = connection->target,
			       .role = connection->role };

	bpf_map_update_elem(&tcp_ends, &at, &end, BPF_ANY);
	return true;
}

static __always_inline bool is_tcp(const struct sock *sk)
{
	__u16 family = sk->__sk_common.skc_family;

	return (family == AF_INET_FAMILY || family == AF_INET6_FAMILY) &&
	       sk->sk_protocol == PROTOCOL_TCP;
}

static __always_inline bool is_unix(const struct sock *sk)
{
	return sk->__sk_common.skc_family == AF_UNIX_FAMILY &&
	       sk->sk_type == SOCK_STREAM_TYPE;
}

/* 0 before anybody asked for it; then it stays. */
static __always_inline __u64 cookie_of(const struct sock *peer)
{
	return BPF_CORE_READ(peer, __sk_common.skc_cookie.counter);
}

/*
 * An accepted socket has the address of the listener; who connects rarely has one. The
 * stream is known by the cookie of who connected, which it gets when it sends.
 */
static __always_inline void unix_learn(struct connection *connection, struct sock *sk,
				       struct sock *peer)
{
	bool here = BPF_CORE_READ((struct unix_sock *)sk, addr);
	bool there = BPF_CORE_READ((struct unix_sock *)peer, addr);
	__u64 own = bpf_get_socket_cookie(sk);

	if (connection->role || here == there)
		return;
	if (here)
		connection->target = cookie_of(peer);
	else
		connection->source = own;
	if (connection->target || connection->source)
		connection->role = here ? ROLE_PASSIVE : ROLE_ACTIVE;
}

/* What the other end has received, if nothing but @bytes is under way to it. */
static __always_inline bool unix_count(struct connection *connection, struct sock *peer,
				       __u64 bytes)
{
	__u64 cookie = cookie_of(peer);
	__u64 *passed = cookie ? bpf_map_lookup_elem(&unix_passed, &cookie) : NULL;

	/* One that has a cookie may have been forgotten. */
	if ((cookie && !passed) ||
	    BPF_CORE_READ((struct unix_sock *)peer, inq_len) != bytes)
		return false;
	connection->passed = (passed ? *passed : 0) + bytes;
	connection->is_counted = 1;
	return true;
}

static __always_inline void tell_sent(const struct connection *connection, __u64 end,
				      __u64 bytes, __u32 family)
{
	struct task_request *serves =
		bpf_task_storage_get(&task_request, bpf_get_current_task_btf(), NULL, 0);
	struct received message = {
		connection->source, connection->target, end - bytes, end, 0, family
	};

	if (serves && serves->request_id && end >= bytes)
		message_tell(&message, serves->request_id, ABI_SENT, 0);
}

/* More of what no request began with yet goes on where that ended. */
static __always_inline void keep_received(const struct connection *connection, __u64 end,
					  __u64 bytes, __u32 family)
{
	struct received *last =
		bpf_task_storage_get(&received, bpf_get_current_task_btf(), NULL,
				     BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (!last)
		return;
	if (last->taken || last->source != connection->target ||
	    last->target != connection->source || last->end != end - bytes)
		last->begin = end - bytes;
	last->source = connection->target;
	last->target = connection->source;
	last->end = end >= bytes ? end : 0;
	last->taken = 0;
	last->family = family;
}

/*
 * Bytes before the one numbered @seq of a stream that begins at @first; @about: less than
 * 2 GiB away. Packets come in while we look, so only @seq, which moves under the lock of
 * who is calling, tells the place.
 */
static __always_inline __u64 position(__u32 seq, __u64 first, __u64 about)
{
	return about + (__s64)(__s32)(seq - (__u32)first - (__u32)about);
}

static __always_inline void tcp_sent(struct sock *sk, struct connection *connection,
				     __u64 bytes)
{
	struct tcp_sock *tcp = bpf_skc_to_tcp_sock(sk);

	if (!tcp || !tcp_known(connection, sk, tcp))
		return;
	struct tcp_end *end = tcp_end_of((__u64)sk);

	if (end && end->has_streams)
		return;
	message_count(0, bytes);
	if (connection->role != ROLE_ACTIVE)
		return;
	tell_sent(connection,
		  position(tcp->write_seq, connection->source, tcp->bytes_acked), bytes,
		  ABI_TCP);
}

/* A FIN counts as a byte, also as one that was read when all before it has been. */
static __always_inline __u64 tcp_read(const struct sock *sk, const struct tcp_sock *tcp,
				      __u64 target)
{
	__u32 copied = tcp->copied_seq;
	bool fin = copied == tcp->rcv_nxt && sk->sk_shutdown & RCV_SHUTDOWN_FLAG;

	return position(copied - fin, target, tcp->bytes_received);
}

static __always_inline void tcp_received(struct sock *sk, struct connection *connection,
					 __u64 bytes)
{
	struct tcp_sock *tcp = bpf_skc_to_tcp_sock(sk);

	if (!tcp || !tcp_known(connection, sk, tcp)) {
		message_forget();
		return;
	}
	struct tcp_end *end = tcp_end_of((__u64)sk);

	if (!end || !end->has_streams)
		message_count(bytes, 0);
	if (connection->role != ROLE_PASSIVE)
		return;
	__u64 read = tcp_read(sk, tcp, connection->target);

	if (end)
		end->read = read;
	keep_received(connection, read, bytes, ABI_TCP);
}

static __always_inline void unix_sent(struct sock *sk, struct connection *connection,
				      __u64 bytes)
{
	struct unix_sock *own = bpf_skc_to_unix_sock(sk);
	struct sock *peer = own ? own->peer : NULL;

	if (!peer)
		return;
	message_count(0, bytes);
	unix_learn(connection, sk, peer);
	if (connection->role != ROLE_ACTIVE)
		return;
	if (connection->is_counted)
		connection->passed += bytes;
	else if (!unix_count(connection, peer, bytes))
		return;
	tell_sent(connection, connection->passed, bytes, ABI_UNIX);
}

static __always_inline void unix_received(struct sock *sk, struct connection *connection,
					  __u64 bytes)
{
	struct unix_sock *own = bpf_skc_to_unix_sock(sk);
	struct sock *peer = own ? own->peer : NULL;

	message_count(bytes, 0);
	if (peer)
		unix_learn(connection, sk, peer);
	if (connection->role == ROLE_ACTIVE)
		return;
	connection->passed += bytes;
	__u64 cookie = bpf_get_socket_cookie(sk);

	bpf_map_update_elem(&unix_passed, &cookie, &connection->passed, BPF_ANY);
	if (connection->role)
		keep_received(connection, connection->passed, bytes, ABI_UNIX);
	else
		message_forget();
}

static __always_inline struct connection *connection_of(struct sock *sk)
{
	return bpf_sk_storage_get(&connections, sk, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
}

SEC("tp_btf/sock_send_length")
int BPF_PROG(message_sent, struct sock *sk, int bytes)
{
	if (bytes <= 0 || !is_wanted())
		return 0;
	bool tcp = is_tcp(sk);
	struct connection *connection = tcp || is_unix(sk) ? connection_of(sk) : NULL;

	if (connection && tcp)
		tcp_sent(sk, connection, bytes);
	else if (connection)
		unix_sent(sk, connection, bytes);
	return 0;
}

SEC("tp_btf/sock_recv_length")
int BPF_PROG(message_received, struct sock *sk, int bytes, int flags)
{
	if (bytes <= 0 || flags & MSG_PEEK_FLAG || !is_wanted())
		return 0;
	bool tcp = is_tcp(sk);
	struct connection *connection = tcp || is_unix(sk) ? connection_of(sk) : NULL;

	if (connection && tcp)
		tcp_received(sk, connection, bytes);
	else if (connection)
		unix_received(sk, connection, bytes);
	return 0;
}
