/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads the file's content; see revocation.h. */
#include "silo/revocation.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
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

/* All silos share the descriptor's position, so it is left alone. */
static int read_at(int fd, uint8_t *dst, size_t len)
{
	size_t done = 0;
	while (done < len) {
		ssize_t n = pread(fd, dst + done, len - done, (off_t)done);
		if (n == 0)
			return -EIO;
		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0)
			done += (size_t)n;
	}
	return 0;
}

static int load(int fd, struct tls_crls **ret_crls, struct err *err)
{
	struct stat st;
	if (fstat(fd, &st) < 0)
		return err_set(err, -errno, "%s", err_str(-errno));
	if (st.st_size < 0 || (uint64_t)st.st_size > LIMIT_FILE_CRL)
		return err_set(err, ERR_TOO_LARGE, "more than %u bytes", LIMIT_FILE_CRL);
	size_t len = (size_t)st.st_size;
	uint8_t *bytes = mem_alloc(len ? len : 1);
	int r = bytes ? read_at(fd, bytes, len) : -ENOMEM;
	if (r < 0)
		err_set(err, r, "%s", err_str(r));
	else
		r = tls_crls_new(bytes, len, ret_crls, err);
	mem_free(bytes);
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
