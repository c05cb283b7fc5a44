// SPDX-License-Identifier: Apache-2.0
// thrift_ledger pool|threaded|simple PORT: a server, until its input ends.
// thrift_ledger client PORT THREADS TURNS: calls of every kind over connections that each
// serve for ten turns; prints "METHOD<tab>COUNT" as it sent them.
#include <thrift/concurrency/ThreadFactory.h>
#include <thrift/concurrency/ThreadManager.h>
#include <thrift/protocol/TBinaryProtocol.h>
#include <thrift/server/TSimpleServer.h>
#include <thrift/server/TThreadPoolServer.h>
#include <thrift/server/TThreadedServer.h>
#include <thrift/transport/TBufferTransports.h>
#include <thrift/transport/TServerSocket.h>
#include <thrift/transport/TSocket.h>

#include <atomic>
#include <cstdio>
#include <stdexcept>
#include <thread>
#include <unistd.h>
#include <vector>

#include "Ledger.h"

using namespace apache::thrift;
using std::make_shared;

struct Handler final : LedgerIf {
	int32_t add(const int32_t a, const int32_t b) override
	{
		for (volatile int i = 0; i < 20000; i = i + 1)
			;
		return a + b;
	}
	int32_t refuse(const int32_t) override
	{
		Refused refused;
		refused.why = "no";
		throw refused;
	}
	int32_t crash(const int32_t) override { throw std::runtime_error("thrown"); }
	void note(const int32_t) override {}
};

static void serve(const std::string &kind, int port)
{
	auto processor = make_shared<LedgerProcessor>(make_shared<Handler>());
	auto socket = make_shared<transport::TServerSocket>("127.0.0.1", port);
	auto transports = make_shared<transport::TBufferedTransportFactory>();
	auto protocols = make_shared<protocol::TBinaryProtocolFactory>();
	std::thread([] {
		while (getchar() != EOF)
			;
		_exit(0);
	}).detach();
	if (kind == "pool") {
		auto threads = concurrency::ThreadManager::newSimpleThreadManager(4);
		threads->threadFactory(make_shared<concurrency::ThreadFactory>());
		threads->start();
		server::TThreadPoolServer(processor, socket, transports, protocols, threads).serve();
	} else if (kind == "threaded") {
		server::TThreadedServer(processor, socket, transports, protocols).serve();
	} else {
		server::TSimpleServer(processor, socket, transports, protocols).serve();
	}
}

static void turn(LedgerClient &client, std::atomic<int> *sent)
{
	client.add(1, 2);
	sent[0]++;
	try {
		client.refuse(1);
	} catch (const Refused &) {
		sent[1]++;
	}
	try {
		client.crash(1);
	} catch (const TApplicationException &) {
		sent[2]++;
	}
	client.note(1);
	sent[3]++;
}

static void call(int port, int threads, int turns)
{
	std::atomic<int> sent[4] = {};
	std::vector<std::thread> running;
	for (int t = 0; t < threads; t++)
		running.emplace_back([&] {
			for (int i = 0; i < turns; i += 10) {
				auto socket = make_shared<transport::TSocket>("127.0.0.1", port);
				auto buffered = make_shared<transport::TBufferedTransport>(socket);
				LedgerClient client(
					make_shared<protocol::TBinaryProtocol>(buffered));
				buffered->open();
				for (int j = 0; j < 10; j++)
					turn(client, sent);
				client.add(1, 2); // the last note is over when this is answered
				sent[0]++;
				buffered->close();
			}
		});
	for (auto &thread : running)
		thread.join();
	static const char *const names[] = {"add", "refuse", "crash", "note"};
	for (int i = 0; i < 4; i++)
		printf("%s\t%d\n", names[i], sent[i].load());
}

int main(int argc, char **argv)
{
	if (argc < 3)
		return 2;
	if (std::string(argv[1]) == "client" && argc == 5)
		call(atoi(argv[2]), atoi(argv[3]), atoi(argv[4]));
	else
		serve(argv[1], atoi(argv[2]));
	return 0;
}
