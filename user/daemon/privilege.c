// SPDX-License-Identifier: Apache-2.0
#include "daemon/privilege.h"

#include <cap-ng.h>
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/cleanup.h"
#include "core/file.h"
#include "core/mem.h"
#include "core/str.h"

static char *folder_of(const char *file)
{
	const char *slash = strrchr(file, '/');

	if (!slash)
		return mem_strdup(".");
	if (slash == file)
		return mem_strdup("/");
	return mem_printf("%.*s", (int)(slash - file), file);
}

static struct err *find_user(const char *name, uid_t *ret_uid, gid_t *ret_gid)
{
	errno = 0;
	struct passwd *entry = getpwnam(name);

	if (!entry)
		return err_new(ERR_NOT_FOUND, "no user '%s' (setting 'user')", name);
	*ret_uid = entry->pw_uid;
	*ret_gid = entry->pw_gid;
	return NULL;
}

struct err *privilege_folder(const char *file, const char *user)
{
	CLEANUP(free) char *folder = folder_of(file);
	uid_t uid = 0;
	gid_t gid = 0;

	if (!access(folder, F_OK))
		return NULL;
	TRY(file_mkdirs(folder));
	if (!user || !*user)
		return NULL;
	TRY(find_user(user, &uid, &gid));
	if (chown(folder, uid, gid))
		return err_errno(errno, "give %s to %s", folder, user);
	return NULL;
}

static struct err *become(uid_t uid, gid_t gid)
{
	if (uid == geteuid())
		return NULL;
	if (setgroups(0, NULL) || setresgid(gid, gid, gid) || setresuid(uid, uid, uid))
		return err_errno(errno, "become uid %u", uid);
	return NULL;
}

struct err *privilege_drop(const char *user, const char *file)
{
	uid_t uid = geteuid();
	gid_t gid = getegid();

	if (user && *user) {
		TRY(find_user(user, &uid, &gid));
	} else if (uid == 0 && file) {
		CLEANUP(free) char *folder = folder_of(file);
		struct stat info;

		if (!stat(folder, &info) && info.st_uid != 0) {
			uid = info.st_uid;
			gid = info.st_gid;
		}
	}
	TRY(become(uid, gid));
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return err_errno(errno, "set no_new_privs");
	capng_clear(CAPNG_SELECT_CAPS);
	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	if (capng_apply(CAPNG_SELECT_CAPS))
		return err_new(ERR_PERMISSION, "cannot drop capabilities");
	return NULL;
}

char *privilege_missing(void)
{
	static const struct {
		unsigned cap;
		const char *name;
	} needed[] = {
		{ CAP_BPF, "CAP_BPF" },
		{ CAP_PERFMON, "CAP_PERFMON" },
		{ CAP_SYS_PTRACE, "CAP_SYS_PTRACE" },
	};
	CLEANUP(str_fini) struct str names = { 0 };

	capng_get_caps_process();
	if (capng_have_capability(CAPNG_EFFECTIVE, CAP_SYS_ADMIN))
		return NULL;
	for (size_t i = 0; i < sizeof(needed) / sizeof(*needed); i++)
		if (!capng_have_capability(CAPNG_EFFECTIVE, needed[i].cap))
			str_printf(&names, "%s%s", names.length ? ", " : "",
				   needed[i].name);
	return names.length ? str_take(&names) : NULL;
}
