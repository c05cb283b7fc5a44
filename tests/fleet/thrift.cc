// SPDX-License-Identifier: Apache-2.0
// The Thrift service of the fleet, with as many methods as are asked for: what the compiler
// generates for a fixed list of them, written by hand for any name.
#include <thrift/TDispatchProcessor.h>
#include <thrift/protocol/TBinaryProtocol.h>
#include <thrift/server/TThreadedServer.h>
#include <thrift/transport/TBufferTransports.h>
#include <thrift/transport/TServerSocket.h>
#include <thrift/transport/TSocket.h>

#include "fleet.hh"

using namespace apache::thrift;
using protocol::TProtocol;
using std::make_shared;

/* An empty struct: an argument list, and an answer, of nothing. */
static uint32_t read_nothing(TProtocol *in)
{
	std::string name;
	protocol::TType type;
	int16_t id;
	uint32_t bytes = in->readStructBegin(name);
	for (;;) {
		bytes += in->readFieldBegin(name, type, id);
		if (type == protocol::T_STOP)
			break;
		bytes += in->skip(type);
	}
	return bytes + in->readStructEnd();
}

static void write_nothing(TProtocol *out)
{
	out->writeStructBegin("nothing");
	out->writeFieldStop();
	out->writeStructEnd();
}

struct Post_presult {
	__attribute__((noinline)) uint32_t read(TProtocol *in);
};

uint32_t Post_presult::read(TProtocol *in)
{
	return read_nothing(in);
}

class PostProcessor : public TDispatchProcessor {
	int database, kinds;
	double base_ns;
	Truth &truth;

public:
	PostProcessor(int d, int k, double b, Truth &t)
	    : database(d), kinds(k), base_ns(b), truth(t)
	{
	}

protected:
	bool dispatchCall(TProtocol *in, TProtocol *out, const std::string &name, int32_t number,
			  void *context) override;
};

bool PostProcessor::dispatchCall(TProtocol *in, TProtocol *out, const std::string &name,
				 int32_t number, void *)
{
	uint64_t begin = cpu_ns();
	int kind = (name[5] - 'a') * 26 + name[6] - 'a';
	read_nothing(in);
	in->readMessageEnd();
	in->getTransport()->readEnd();
	burn(burn_of(kind % kinds, base_ns));
	if (database && kind % 2)
		fleet_postgres(database, "SELECT 1 AS " + name);
	truth.add(name, 1, cpu_ns() - begin);
	out->writeMessageBegin(name, protocol::T_REPLY, number);
	write_nothing(out);
	out->writeMessageEnd();
	out->getTransport()->writeEnd();
	out->getTransport()->flush();
	return true;
}

void thrift_serve(int port, int database, int kinds, double base_ns, Truth &truth)
{
	server::TThreadedServer(make_shared<PostProcessor>(database, kinds, base_ns, truth),
				make_shared<transport::TServerSocket>("127.0.0.1", port),
				make_shared<transport::TBufferedTransportFactory>(),
				make_shared<protocol::TBinaryProtocolFactory>())
		.serve();
}

bool thrift_call(int port, const std::string &name)
{
	static Pool<std::shared_ptr<transport::TBufferedTransport>> pool;
	std::shared_ptr<transport::TBufferedTransport> transport;
	std::string got;
	protocol::TMessageType type;
	int32_t number;
	try {
		if (!pool.take(transport)) {
			transport = make_shared<transport::TBufferedTransport>(
				make_shared<transport::TSocket>("127.0.0.1", port));
			transport->open();
		}
		auto out = make_shared<protocol::TBinaryProtocol>(transport);
		TProtocol *virtually = out.get();
		virtually->writeMessageBegin(name, protocol::T_CALL, 0);
		write_nothing(virtually);
		virtually->writeMessageEnd();
		transport->writeEnd();
		transport->flush();
		virtually->readMessageBegin(got, type, number);
		Post_presult().read(virtually);
		virtually->readMessageEnd();
		transport->readEnd();
		pool.give(transport);
		return true;
	} catch (const TException &) {
		return false;
	}
}
