/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The file's content lives in a memfd that is written once and never again: all silos read the same. */
#include "broker/crl.h"

#include <errno.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/mem.h"
#include "broker/broker.h"
#include "broker/file_watch.h"
#include "broker/silo_peer.h"
#include "ipc/ring_chan.h"
#include "tls/crl.h"

static const char TARGET[] = "ztunnel::tls::crl";

/* Quiet time after the last event before the file is read, ms (dataplane 12.1). */
#define DEBOUNCE_MS 2000

struct crl {
	struct broker *broker;
	struct file_watch *watch; /* NULL = changes go unseen */
	int fd;                   /* content, -1 = none yet */
};

/* Whether it is a CRL file at all; silos judge its signatures. */
static int check(const struct buf *content, size_t *ret_cnt, struct err *err)
{
	struct tls_crls *crls;
	int r = tls_crls_new(content->data ? content->data : (const uint8_t *)"", content->len, &crls, err);
	if (r < 0)
		return r;
	*ret_cnt = tls_crls_cnt(crls);
	tls_crls_free(crls);
	return 0;
}

static int load(struct crl *crl, struct err *err)
{
	struct buf content;
	size_t cnt = 0;
	buf_init(&content, LIMIT_FILE_CRL);
	int r = file_read(crl->broker->settings.crl_path, &content);
	if (r < 0)
		err_set(err, r, "%s", err_str(r));
	else
		r = check(&content, &cnt, err);
	if (r == 0) {
		int fd;
		r = file_anon("crl", content.data, content.len, &fd);
		if (r < 0) {
			err_set(err, r, "%s", err_str(r));
		} else {
			fd_close(&crl->fd);
			crl->fd = fd;
			log_msg(&crl->broker->log, LOG_INFO, TARGET, "CRL file loaded, lists: %zu", cnt);
		}
	}
	buf_done(&content);
	return r;
}

static void on_changed(void *ctx)
{
	struct crl *crl = ctx;
	struct err err = {0};
	if (load(crl, &err) < 0)
		log_msg(&crl->broker->log, LOG_WARN, TARGET,
		        "CRL file is not used, the previous one stays: %s", err.text);
	else
		silo_peers_set_crl(crl->broker);
}

int crl_new(struct broker *broker, struct crl **ret_crl)
{
	struct err err = {0};
	*ret_crl = NULL;
	if (!broker->settings.crl_path)
		return 0;
	struct crl *crl = mem_zalloc(1, sizeof(*crl));
	if (!crl)
		return -ENOMEM;
	*crl = (struct crl){.broker = broker, .fd = -1};
	int r = load(crl, &err);
	if (r == -ENOENT) {
		log_msg(&broker->log, LOG_WARN, TARGET,
		        "CRL file is missing, nothing is revoked until it comes");
	} else if (r < 0) {
		log_msg(&broker->log, LOG_WARN, TARGET,
		        "CRL file cannot be used, CRLs are off until a restart: %s", err.text);
		crl_free(crl);
		return 0;
	}
	r = file_watch_new(broker->io, broker->settings.crl_path, DEBOUNCE_MS, on_changed, crl, &crl->watch);
	if (r < 0)
		log_msg(&broker->log, LOG_WARN, TARGET, "CRL file is not watched, changes need a restart: %s",
		        err_str(r));
	*ret_crl = crl;
	return 0;
}

void crl_free(struct crl *crl)
{
	if (!crl)
		return;
	file_watch_free(crl->watch);
	fd_close(&crl->fd);
	mem_free(crl);
}

void crl_send(const struct crl *crl, struct ring_chan *chan)
{
	struct ipc_record rec = {.type = IPC_CRL};
	struct err err = {0};
	int fd = crl && chan && crl->fd >= 0 ? dup(crl->fd) : -1;
	if (fd >= 0 && ring_chan_send(chan, &rec, fd, &err) < 0)
		log_msg(&crl->broker->log, LOG_ERROR, TARGET, "CRL cannot be sent: %s", err.text);
}
