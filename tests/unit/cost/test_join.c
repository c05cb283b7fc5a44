// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "cost/join.h"

static struct message bytes(uint64_t begin, uint64_t end)
{
	return (struct message){ .source = 11, .target = 22, .begin = begin, .end = end };
}

static void sent(struct join *join, uint64_t begin, uint64_t end, uint64_t sender)
{
	struct message message = bytes(begin, end);

	join_sent(join, &message, sender);
}

static uint64_t sender(const struct join *join, uint64_t begin, uint64_t end)
{
	struct message message = bytes(begin, end);

	return join_sender(join, &message);
}

static void what_one_request_sent_is_its_own(void **state)
{
	CLEANUP(join_free) struct join *join = join_new(0);

	(void)state;
	sent(join, 0, 10, 7);
	sent(join, 10, 30, 8);
	assert_int_equal(sender(join, 0, 10), 7);
	assert_int_equal(sender(join, 10, 30), 8);
	/* The server began before it had all of it. */
	assert_int_equal(sender(join, 10, 12), 8);
}

static void a_message_in_several_sends_is_one(void **state)
{
	CLEANUP(join_free) struct join *join = join_new(0);

	(void)state;
	sent(join, 0, 4, 7);
	sent(join, 9, 20, 7);
	assert_int_equal(sender(join, 0, 20), 0); /* not all seen yet */
	sent(join, 4, 9, 7);
	assert_int_equal(sender(join, 0, 20), 7);
}

static void bytes_of_several_requests_have_no_sender(void **state)
{
	CLEANUP(join_free) struct join *join = join_new(0);

	(void)state;
	sent(join, 0, 10, 7);
	sent(join, 10, 20, 8);
	assert_int_equal(sender(join, 0, 20), 0);
	assert_int_equal(sender(join, 5, 10), 7); /* begins within a message */
	assert_int_equal(sender(join, 5, 20), 0);
}

static void the_rest_of_one_other_may_come_first(void **state)
{
	CLEANUP(join_free) struct join *join = join_new(0);
	struct message message = bytes(5, 30);

	(void)state;
	message.has_rest = true;
	sent(join, 0, 10, 7);
	sent(join, 10, 20, 8);
	assert_int_equal(join_sender(join, &message), 0); /* not all seen yet */
	sent(join, 20, 30, 8);
	assert_int_equal(join_sender(join, &message), 8);
	sent(join, 20, 30, 9); /* a third: whose is the request? */
	assert_int_equal(join_sender(join, &message), 0);
	sent(join, 20, 30, 7);
	assert_int_equal(join_sender(join, &message), 0);
}

static void another_connection_direction_or_realm_is_another(void **state)
{
	CLEANUP(join_free) struct join *join = join_new(0);
	struct message message = bytes(0, 10), other = message;

	(void)state;
	join_sent(join, &message, 7);
	other.source = 22;
	other.target = 11;
	assert_int_equal(join_sender(join, &other), 0);
	assert_true(message_id(&message) != message_id(&other));
	other = message;
	other.realm = 1;
	assert_int_equal(join_sender(join, &other), 0);
	assert_true(message_id(&message) != message_id(&other));
	other = message;
	other.end = 12;
	assert_true(message_id(&message) == message_id(&other));
}

static void the_younger_half_is_remembered(void **state)
{
	CLEANUP(join_free) struct join *join = join_new(100);

	(void)state;
	for (uint64_t i = 0; i < 1000; i++)
		sent(join, i * 10, i * 10 + 10, i + 1);
	for (uint64_t i = 950; i < 1000; i++)
		assert_int_equal(sender(join, i * 10, i * 10 + 10), i + 1);
	assert_int_equal(sender(join, 0, 10), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_one_request_sent_is_its_own),
		cmocka_unit_test(a_message_in_several_sends_is_one),
		cmocka_unit_test(bytes_of_several_requests_have_no_sender),
		cmocka_unit_test(the_rest_of_one_other_may_come_first),
		cmocka_unit_test(another_connection_direction_or_realm_is_another),
		cmocka_unit_test(the_younger_half_is_remembered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
