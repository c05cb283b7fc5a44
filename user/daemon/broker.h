/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_BROKER_H
#define DAEMON_BROKER_H

/*
 * The process that keeps the privileges. It loads the BPF programs, opens files by the
 * policy of hand.h and spawns workers; it answers one request at a time over a
 * SOCK_SEQPACKET pair and reads nothing else. A second channel carries bytes the other
 * way: signals that arrive at the main process.
 *
 *	request  u8 op, then its fields (core/wire.h)
 *	reply    u8 1, then fields and descriptors; or u8 0, u32 code, u32 errno, text
 */

#include "core/cleanup.h"
#include "core/err.h"
#include "daemon/opener.h"
#include "job/job.h"
#include "probe/attach.h"
#include "probe/calibrate.h"
#include "probe/loader.h"

/* Bytes on the signal channel; its end means that the broker is gone. */
enum broker_signal { BROKER_TERM = 'T', BROKER_HUP = 'H' };

/**
 * broker_serve() - the broker's whole life.
 * @rpc_fd, @signal_fd: our ends; @daemon_pid: the child.
 * @worker_path: of assay-worker, NULL finds it.
 * Ends when the daemon has ended. Return in @ret_status its exit status: 128 + signal
 * when it was killed.
 */
struct err *broker_serve(int rpc_fd, int signal_fd, pid_t daemon_pid,
			 const char *worker_path, int *ret_status);

/* The daemon's side. Each call blocks for one round trip. */
struct broker;
struct broker *broker_connect(int rpc_fd); /* takes the fd */
void broker_free(struct broker *broker);   /* NULL is fine */
CLEANUP_DEFINE(broker_free, struct broker *)

/* broker_start() - loader_open() over there; descriptors are ours afterwards.
 * @ret_sources: loader_sources(), allocated. */
struct err *broker_start(struct broker *broker, const struct probe_config *config,
			 struct probe_fds *ret_fds, char **ret_sources);
struct err *broker_stop(struct broker *broker);
/* broker_walk() - loader_walk() over there: what the daemon holds can only be read. */
struct err *broker_walk(struct broker *broker, int *ret_fd);
/* broker_worker() - a fresh worker of @class; the socket is for job_adopt(). */
struct err *broker_worker(struct broker *broker, enum job_class class, int *ret_fd);
/**
 * broker_attach() - attach_open() over there, onto the file behind @request->file_fd.
 * What the daemon may have probed is any ELF file that it has open, at offsets within its
 * executable segments. That one is the first byte of an instruction is taken on trust: it
 * comes from a worker that parsed foreign bytes, and a wrong one harms the processes that
 * map the file.
 */
struct err *broker_attach(struct broker *broker, const struct attach_request *request,
			  uint32_t *ret_id);
struct err *broker_detach(struct broker *broker, uint32_t id);
/* broker_calibrate() - calibrate_run() over there; @ret_multi: probes can be detached
 * quickly, as windows need. */
struct err *broker_calibrate(struct broker *broker, struct calibration *ret_cost,
			     bool *ret_multi);
/* broker_opener() - opens through the broker; valid as long as it. */
struct opener broker_opener(struct broker *broker);

#endif
