/* SPDX-License-Identifier: Apache-2.0 */
#ifndef COST_JOIN_H
#define COST_JOIN_H

/*
 * Which request asked for this one: the one that sent the bytes with which it began. A
 * message is known by its connection's two streams and its position, see struct
 * abi_message; both sides find the same numbers by themselves.
 *
 * Never a guess: who served bytes that several requests sent, or that were not all seen
 * being sent, has no parent.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/cleanup.h"

#define JOIN_MAX_MESSAGES 131072 /* remembered, at least the younger half of them */
#define JOIN_MAX_PARTS	  64	 /* sends that one range may consist of */

struct message {
	uint64_t source, target; /* streams */
	uint64_t begin, end;
	uint64_t realm; /* what the numbers are unique in; 0, the world: bytes of TCP,
			* 1: streams that share a TCP connection, by number */
	bool has_rest;	/* received: it may begin with what another request sent */
};

/* message_id() - of the byte at which it begins; never 0, the same on all hosts. */
uint64_t message_id(const struct message *message);

struct join;

struct join *join_new(size_t limit); /* 0: JOIN_MAX_MESSAGES */
void join_free(struct join *join);   /* NULL is fine */
CLEANUP_DEFINE(join_free, struct join *)

/* join_sent() - request @sender sent @message. The oldest are forgotten when it is full. */
void join_sent(struct join *join, const struct message *message, uint64_t sender);

/* join_sender() - who sent all the bytes of @message, or those behind the rest of what one
 * other sent; 0: nobody known, or more of them. Ask again later: a send may become known
 * after the bytes were served. */
uint64_t join_sender(const struct join *join, const struct message *message);

#endif
