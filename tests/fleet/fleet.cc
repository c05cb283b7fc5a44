// SPDX-License-Identifier: Apache-2.0
// A service graph of real programs whose costs are known:
//
//	fleet front PORT KINDS BASE STOCK POST   gRPC; asks stock and post
//	fleet stock PORT KINDS BASE REDIS        gRPC; asks redis
//	fleet post PORT KINDS BASE DATABASE      Thrift; asks PostgreSQL
//	fleet drive PORT KINDS THREADS REQUESTS  sends requests of all kinds to a gRPC port
//
// Servers run until their input ends. All print "NAME<tab>COUNT<tab>CPU": what they did by
// their own account, CPU in ns of the threads while they worked for such requests. The
// names of what a kind asks for have its two letters, so a parent's kind follows from the
// child's name. Rates of kinds are heavy-tailed.
#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/codegen/client_unary_call.h>
#include <grpcpp/impl/codegen/method_handler.h>
#include <grpcpp/impl/codegen/proto_utils.h>
#include <grpcpp/impl/codegen/service_type.h>

#include <arpa/inet.h>
#include <atomic>
#include <functional>
#include <list>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "fleet.hh"
#include "shop.pb.h"

using grpc::Status;
using shop::Item;
using Channel = std::shared_ptr<grpc::Channel>;
using google::protobuf::MessageLite;

static Truth truth;
static double base_ns;

static Pool<int> sockets; // a program asks one server in this way

int fleet_connect(int port)
{
	sockaddr_in address = {};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	address.sin_family = AF_INET;
	address.sin_port = htons(uint16_t(port));
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return connect(fd, reinterpret_cast<sockaddr *>(&address), sizeof(address)) ? -1 : fd;
}

static bool put(int fd, const std::string &bytes)
{
	return send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL) == ssize_t(bytes.size());
}

bool fleet_redis(int port, const std::string &command, const std::string &key)
{
	char answer[64];
	int fd;
	if (!sockets.take(fd))
		fd = fleet_connect(port);
	if (!put(fd, command + " " + key + "\r\n") || recv(fd, answer, sizeof(answer), 0) <= 0)
		return false;
	sockets.give(fd);
	return true;
}

static std::string packet(const std::string &type, const std::string &body)
{
	uint32_t bytes = htonl(uint32_t(body.size() + 4));
	return type + std::string(reinterpret_cast<char *>(&bytes), 4) + body;
}

/* Packets of PostgreSQL, until it is ready for a query. */
static bool until_ready(int fd)
{
	char type, body[4096];
	uint32_t bytes;
	do {
		if (recv(fd, &type, 1, MSG_WAITALL) != 1 || recv(fd, &bytes, 4, MSG_WAITALL) != 4)
			return false;
		size_t left = ntohl(bytes) - 4;
		if (left > sizeof(body) || (left && recv(fd, body, left, MSG_WAITALL) != ssize_t(left)))
			return false;
	} while (type != 'Z');
	return true;
}

bool fleet_postgres(int port, const std::string &sql)
{
	static const char hello[] = "\0\3\0\0user\0postgres\0database\0postgres\0";
	int fd;
	if (!sockets.take(fd)) {
		fd = fleet_connect(port);
		if (!put(fd, packet("", std::string(hello, sizeof(hello)))) || !until_ready(fd))
			return false;
	}
	if (!put(fd, packet("Q", sql + '\0')) || !until_ready(fd))
		return false;
	sockets.give(fd);
	return true;
}

static Status call(const Channel &channel, const std::string &path, const std::string &word)
{
	grpc::internal::RpcMethod method(path.c_str(), grpc::internal::RpcMethod::NORMAL_RPC);
	grpc::ClientContext context;
	Item in, out;
	in.set_name(word);
	return grpc::internal::BlockingUnaryCall<Item, Item, MessageLite, MessageLite>(
		channel.get(), method, &context, in, &out);
}

/* A gRPC service with a method for every kind, as the compiler's code would register it. */
class Service : public grpc::Service {
public:
	using Work = std::function<Status(int kind, const std::string &word)>;

	Service(const std::string &name, int kinds, const Work &work)
	{
		for (int kind = 0; kind < kinds; kind++) {
			paths.push_back("/fleet." + name + "/get_" + kind_name(kind));
			add(paths.back(), kind, work);
		}
	}

private:
	std::list<std::string> paths; // methods keep pointers into them

	void add(const std::string &path, int kind, const Work &work)
	{
		using Handler = grpc::internal::RpcMethodHandler<Service, Item, Item, MessageLite,
								 MessageLite>;
		AddMethod(new grpc::internal::RpcServiceMethod(
			path.c_str(), grpc::internal::RpcMethod::NORMAL_RPC,
			new Handler(
				[path, kind, work](Service *, grpc::ServerContext *, const Item *in,
						   Item *) {
					uint64_t begin = cpu_ns();
					burn(burn_of(kind, base_ns));
					Status status = work(kind, in->name());
					truth.add(path, 1, cpu_ns() - begin);
					return status;
				},
				this)));
	}
};

/* After the answer, for the same request. */
static void afterwards(const std::string &path)
{
	std::thread([path] {
		usleep(2000);
		uint64_t begin = cpu_ns();
		burn(base_ns);
		truth.add(path, 0, cpu_ns() - begin);
	}).detach();
}

static Status serve_front(int kind, const Channel &stock, int post)
{
	std::string name = kind_name(kind), path = "/fleet.Stock/get_" + name;
	Status status;
	if (kind % 4 == 1) { // two at once
		std::thread other([&] {
			uint64_t begin = cpu_ns();
			call(stock, path, "");
			truth.add("/fleet.Front/get_" + name, 0, cpu_ns() - begin);
		});
		status = call(stock, path, "");
		other.join();
	} else { // one in ten fails and is tried again
		status = call(stock, path, random_share() < .1 ? "fail" : "");
		if (!status.ok())
			status = call(stock, path, "");
	}
	if (kind % 3 && post && random_share() < .7)
		thrift_call(post, "post_" + name);
	if (kind % 5 == 0)
		afterwards("/fleet.Front/get_" + name);
	return status;
}

static void serve(const std::string &role, int port, int kinds, const char *const *others)
{
	Channel stock;
	int first = atoi(others[0]), second = others[1] ? atoi(others[1]) : 0;
	if (role == "front")
		stock = grpc::CreateChannel("127.0.0.1:" + std::to_string(first),
					    grpc::InsecureChannelCredentials());
	Service front("Front", kinds, [&](int kind, const std::string &) {
		return serve_front(kind, stock, second);
	});
	Service stocks("Stock", kinds, [&](int kind, const std::string &word) {
		if (first)
			fleet_redis(first, "GET", kind_name(kind));
		return word == "fail" ? Status(grpc::StatusCode::UNAVAILABLE, "again") : Status::OK;
	});
	grpc::ServerBuilder builder;
	builder.AddListeningPort("127.0.0.1:" + std::to_string(port),
				 grpc::InsecureServerCredentials());
	builder.RegisterService(role == "front" ? &front : &stocks);
	auto server = builder.BuildAndStart();
	server->Wait();
}

/* Zipf: the first kind is the most frequent. */
static int choose(int kinds)
{
	thread_local std::vector<double> sums;
	for (int kind = int(sums.size()); kind < kinds; kind++)
		sums.push_back((kind ? sums.back() : 0) + 1 / std::pow(kind + 1, 1.1));
	double at = random_share() * sums.back();
	int kind = 0;
	while (kind + 1 < kinds && sums[size_t(kind)] < at)
		kind++;
	return kind;
}

static void drive(int port, int kinds, int threads, int requests)
{
	std::vector<std::thread> running;
	std::atomic<int> left{requests}, failed{0};
	for (int t = 0; t < threads; t++)
		running.emplace_back([&, t] {
			grpc::ChannelArguments own;
			own.SetInt("fleet", t / 2); // two threads share a connection
			auto channel =
				grpc::CreateCustomChannel("127.0.0.1:" + std::to_string(port),
							  grpc::InsecureChannelCredentials(), own);
			while (left-- > 0) {
				std::string path = "/fleet.Front/get_" + kind_name(choose(kinds));
				if (!call(channel, path, "").ok())
					failed++;
				truth.add(path, 1, 0);
			}
		});
	for (auto &thread : running)
		thread.join();
	truth.print();
	printf("failed\t%d\t0\n", failed.load());
}

int main(int argc, char **argv)
{
	if (argc < 6)
		return 2;
	const std::string role = argv[1];
	int port = atoi(argv[2]), kinds = atoi(argv[3]);
	if (role == "drive") {
		drive(port, kinds, atoi(argv[4]), atoi(argv[5]));
		return 0;
	}
	base_ns = atof(argv[4]);
	std::thread([] {
		while (getchar() != EOF)
			;
		truth.print();
		_exit(0);
	}).detach();
	if (role == "post")
		thrift_serve(port, atoi(argv[5]), kinds, base_ns, truth);
	else
		serve(role, port, kinds, argv + 5);
	return 1;
}
