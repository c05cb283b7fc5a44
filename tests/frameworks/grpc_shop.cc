// SPDX-License-Identifier: Apache-2.0
// grpc_shop sync|callback|async PORT: a server, until its input ends.
// grpc_shop client PORT THREADS TURNS: calls of every kind; prints "METHOD<tab>COUNT" as it
// sent them. Slow is given up by its client: whether the server sees it is a race.
#include <grpcpp/grpcpp.h>

#include <atomic>
#include <cstdio>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

#include "shop.grpc.pb.h"

using grpc::Status;
using shop::Item;

static const Status refused(grpc::StatusCode::INVALID_ARGUMENT, "refused");

static void work()
{
	for (volatile int i = 0; i < 20000; i = i + 1)
		;
}

class Sync final : public shop::Shop::Service {
	Status Order(grpc::ServerContext *, const Item *in, Item *out) override
	{
		work();
		out->set_name(in->name());
		return Status::OK;
	}
	Status Fail(grpc::ServerContext *, const Item *, Item *) override { return refused; }
	Status Throw(grpc::ServerContext *, const Item *, Item *) override
	{
		throw std::runtime_error("thrown");
	}
	Status Slow(grpc::ServerContext *context, const Item *, Item *) override
	{
		while (!context->IsCancelled())
			usleep(1000);
		return Status::CANCELLED;
	}
};

class Callback final : public shop::Shop::CallbackService {
	using Context = grpc::CallbackServerContext;
	static grpc::ServerUnaryReactor *done(Context *context, const Status &status)
	{
		auto *reactor = context->DefaultReactor();
		reactor->Finish(status);
		return reactor;
	}
	grpc::ServerUnaryReactor *Order(Context *context, const Item *in, Item *out) override
	{
		auto *reactor = context->DefaultReactor();
		out->set_name(in->name());
		std::thread([reactor] {
			work();
			reactor->Finish(Status::OK);
		}).detach();
		return reactor;
	}
	grpc::ServerUnaryReactor *Fail(Context *context, const Item *, Item *) override
	{
		return done(context, refused);
	}
	grpc::ServerUnaryReactor *Throw(Context *, const Item *, Item *) override
	{
		throw std::runtime_error("thrown");
	}
	grpc::ServerUnaryReactor *Slow(Context *context, const Item *, Item *) override
	{
		usleep(2000);
		return done(context, Status::CANCELLED);
	}
};

// One call of the async server: asked for, being answered, done.
struct Call {
	using Ask = void (shop::Shop::AsyncService::*)(grpc::ServerContext *, Item *,
						       grpc::ServerAsyncResponseWriter<Item> *,
						       grpc::CompletionQueue *,
						       grpc::ServerCompletionQueue *, void *);
	shop::Shop::AsyncService *service;
	grpc::ServerCompletionQueue *queue;
	Ask ask;
	Status answer;
	grpc::ServerContext context;
	Item in, out;
	grpc::ServerAsyncResponseWriter<Item> writer{&context};
	bool answered = false;

	Call(shop::Shop::AsyncService *s, grpc::ServerCompletionQueue *q, Ask a, Status status)
	    : service(s), queue(q), ask(a), answer(status)
	{
		(service->*ask)(&context, &in, &writer, queue, queue, this);
	}
	void next()
	{
		if (answered)
			return delete this;
		new Call(service, queue, ask, answer);
		work();
		answered = true;
		writer.Finish(out, answer, this);
	}
};

static void serve_async(shop::Shop::AsyncService *service, grpc::ServerCompletionQueue *queue)
{
	using Service = shop::Shop::AsyncService;
	new Call(service, queue, &Service::RequestOrder, Status::OK);
	new Call(service, queue, &Service::RequestFail, refused);
	new Call(service, queue, &Service::RequestThrow, refused);
	new Call(service, queue, &Service::RequestSlow, Status::CANCELLED);
	void *tag;
	bool ok;
	while (queue->Next(&tag, &ok)) {
		if (ok || static_cast<Call *>(tag)->answered)
			static_cast<Call *>(tag)->next();
	}
}

static void serve(const std::string &kind, const std::string &address)
{
	grpc::ServerBuilder builder;
	Sync sync;
	Callback callback;
	shop::Shop::AsyncService async;
	std::unique_ptr<grpc::ServerCompletionQueue> queue;
	builder.AddListeningPort(address, grpc::InsecureServerCredentials());
	if (kind == "sync")
		builder.RegisterService(&sync);
	else if (kind == "callback")
		builder.RegisterService(&callback);
	else
		builder.RegisterService(&async);
	if (kind == "async")
		queue = builder.AddCompletionQueue();
	auto server = builder.BuildAndStart();
	std::thread poller;
	if (queue)
		poller = std::thread([&] { serve_async(&async, queue.get()); });
	while (getchar() != EOF)
		;
	fflush(nullptr);
	_exit(server ? 0 : 1);
}

using Method = Status (shop::Shop::Stub::*)(grpc::ClientContext *, const Item &, Item *);
static const struct {
	const char *name;
	Method method;
	bool given_up;
} methods[] = {
	{"/shop.Shop/Order", &shop::Shop::Stub::Order, false},
	{"/shop.Shop/Fail", &shop::Shop::Stub::Fail, false},
	{"/shop.Shop/Throw", &shop::Shop::Stub::Throw, false},
	{"/shop.Shop/Slow", &shop::Shop::Stub::Slow, true},
};

static void call(const std::string &address, int threads, int turns)
{
	auto channel = grpc::CreateChannel(address, grpc::InsecureChannelCredentials());
	std::atomic<int> sent[4] = {};
	std::vector<std::thread> running;
	for (int t = 0; t < threads; t++)
		running.emplace_back([&] {
			auto stub = shop::Shop::NewStub(channel);
			for (int i = 0; i < turns * 4; i++) {
				const auto &m = methods[i % 4];
				grpc::ClientContext context;
				Item in, out;
				if (m.given_up)
					context.set_deadline(std::chrono::system_clock::now() +
							     std::chrono::milliseconds(20));
				in.set_name("thing");
				((*stub).*m.method)(&context, in, &out);
				sent[i % 4]++;
			}
		});
	for (auto &thread : running)
		thread.join();
	for (int i = 0; i < 4; i++)
		printf("%s\t%d\n", methods[i].name, sent[i].load());
}

int main(int argc, char **argv)
{
	if (argc < 3)
		return 2;
	const std::string address = std::string("127.0.0.1:") + argv[2];
	if (std::string(argv[1]) == "client" && argc == 5)
		call(address, atoi(argv[3]), atoi(argv[4]));
	else
		serve(argv[1], address);
	return 0;
}
