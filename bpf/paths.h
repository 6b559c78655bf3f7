/* The way from a file to the root, over the mounts in between.
 *
 * SPDX-License-Identifier: GPL-2.0-only OR MIT */
#ifndef ROSE_PATHS_H
#define ROSE_PATHS_H

#include "rose_core.h"

struct rose_path {
	struct dentry *dentry, *root_dentry;
	struct vfsmount *mnt, *root_mnt;
};

/* Where the task's own root is: a walk ends there. */
static __always_inline void rose_path_root(struct rose_path *path, struct task_struct *task)
{
	path->root_dentry = BPF_CORE_READ(task, fs, root.dentry);
	path->root_mnt = BPF_CORE_READ(task, fs, root.mnt);
}

/* One step up. The name that was left is in *name: NULL when only a mount was left. False: at the root already. */
static __always_inline bool rose_step_up(struct rose_path *path, const unsigned char **name)
{
	struct dentry *dentry = path->dentry, *parent;
	struct vfsmount *mnt = path->mnt;

	*name = NULL;
	if (!dentry || !mnt || (dentry == path->root_dentry && mnt == path->root_mnt))
		return false;
	if (dentry == BPF_CORE_READ(mnt, mnt_root)) {
		struct mount *mount = (void *)mnt - bpf_core_field_offset(struct mount, mnt);
		struct mount *up = BPF_CORE_READ(mount, mnt_parent);

		if (!up || up == mount)
			return false;
		path->dentry = BPF_CORE_READ(mount, mnt_mountpoint);
		path->mnt = (void *)up + bpf_core_field_offset(struct mount, mnt);
		return true;
	}
	parent = BPF_CORE_READ(dentry, d_parent);
	*name = BPF_CORE_READ(dentry, d_name.name);
	/* Detached: a memfd, or a mount taken away. */
	path->dentry = parent == dentry ? NULL : parent;
	return true;
}

#endif
