/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads the file's content; see revocation.h. */
#include "silo/revocation.h"

#include <errno.h>

#include "base/buf.h"
#include "base/file.h"
#include "culvert/limits.h"
#include "silo/metrics.h"
#include "silo/silo.h"
#include "tls/crl.h"

static const char TARGET[] = "ztunnel::tls::crl";

int revocation_init(struct silo *silo)
{
	if (!silo->settings.crl_path)
		return 0;
	silo->revocation = tls_revocation_new();
	return silo->revocation ? 0 : -ENOMEM;
}

void revocation_done(struct silo *silo)
{
	tls_revocation_free(silo->revocation);
	silo->revocation = NULL;
}

void revocation_note(struct silo *silo, bool is_inbound, int code)
{
	if (code == ERR_TLS_REVOKED || code == ERR_REVOKED)
		metrics_crl_rejected(silo, is_inbound);
}

static int load(int fd, struct tls_crls **ret_crls, struct err *err)
{
	struct buf content;
	buf_init(&content, LIMIT_FILE_CRL);
	int r = file_read_at(fd, &content);
	if (r < 0)
		err_set(err, r, "%s", err_str(r));
	else
		r = tls_crls_new(content.data, content.len, ret_crls, err);
	buf_done(&content);
	return r;
}

void revocation_on_file(struct silo *silo, int fd)
{
	struct tls_crls *crls;
	struct err err = {0};
	if (!silo->revocation)
		return;
	if (load(fd, &crls, &err) < 0)
		log_msg(&silo->log, LOG_WARN, TARGET, "CRL is not used, the previous one stays: %s",
		        err.text);
	else
		tls_revocation_set(silo->revocation, crls);
}
