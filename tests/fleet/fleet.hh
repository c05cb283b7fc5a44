/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLEET_H
#define FLEET_H

/* What the programs of the fleet have in common: names of kinds of requests, work that
 * each accounts itself, and what they know of each other. */
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <map>
#include <mutex>
#include <random>
#include <string>
#include <vector>

/* Two letters: digits would be taken for an id and left out of the name. */
inline std::string kind_name(int kind)
{
	return std::string{char('a' + kind / 26), char('a' + kind % 26)};
}

inline uint64_t cpu_ns()
{
	timespec now;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return uint64_t(now.tv_sec) * 1000000000 + uint64_t(now.tv_nsec);
}

/* The truth: per name how many there were and the CPU that they used. */
class Truth {
	std::mutex guard;
	struct Sum {
		uint64_t count = 0;
		double cpu = 0;
	};
	std::map<std::string, Sum> sums;

public:
	void add(const std::string &name, uint64_t count, uint64_t cpu)
	{
		std::lock_guard<std::mutex> lock(guard);
		Sum &sum = sums[name];
		sum.count += count;
		sum.cpu += double(cpu);
	}
	void print()
	{
		std::lock_guard<std::mutex> lock(guard);
		for (auto &[name, sum] : sums)
			printf("%s\t%lu\t%.0f\n", name.c_str(), (unsigned long)sum.count, sum.cpu);
		fflush(stdout);
	}
};

inline double random_share()
{
	thread_local std::mt19937_64 generator(std::random_device{}());
	return std::uniform_real_distribution<double>(0, 1)(generator);
}

/* @mean_ns of CPU on average, exponential and cut: its variation is below 1. */
inline void burn(double mean_ns)
{
	double wanted = -mean_ns * std::log(1 - random_share());
	uint64_t until = cpu_ns() + uint64_t(std::fmin(wanted, 5 * mean_ns));
	while (cpu_ns() < until)
		for (volatile int i = 0; i < 200; i = i + 1)
			;
}

/* Kinds differ in cost by a factor of eight. */
inline double burn_of(int kind, double base_ns)
{
	return base_ns * (1 + kind * 7 % 8);
}

/* Connections that are not in use: threads come and go. */
template <typename T> class Pool {
	std::mutex guard;
	std::vector<T> idle;

public:
	bool take(T &one)
	{
		std::lock_guard<std::mutex> lock(guard);
		if (idle.empty())
			return false;
		one = idle.back();
		idle.pop_back();
		return true;
	}
	void give(const T &one)
	{
		std::lock_guard<std::mutex> lock(guard);
		idle.push_back(one);
	}
};

/* Ask a server that speaks lines or packets; false: it is gone. */
int fleet_connect(int port);
bool fleet_redis(int port, const std::string &command, const std::string &key);
bool fleet_postgres(int port, const std::string &sql);

/* Call "post_KIND" of the Thrift server; serve it until input ends. */
bool thrift_call(int port, const std::string &name);
void thrift_serve(int port, int database, int kinds, double base_ns, Truth &truth);

#endif
