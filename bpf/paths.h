/* Walks from a file to the root directory, across mounts.
 * SPDX-License-Identifier: GPL-2.0-only OR MIT */
#ifndef ROSE_PATHS_H
#define ROSE_PATHS_H

#include "rose_core.h"

struct rose_path {
	struct dentry *dentry, *root_dentry;
	struct vfsmount *mnt, *root_mnt;
};

/* Stores the root directory of the task, at which a walk ends. */
static __always_inline void rose_path_root(struct rose_path *path, struct task_struct *task)
{
	path->root_dentry = BPF_CORE_READ(task, fs, root.dentry);
	path->root_mnt = BPF_CORE_READ(task, fs, root.mnt);
}

/* Moves to the parent. Sets *name to the name of the entry that was left, or to NULL if only a mount was left. Returns
 * false at the root. */
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
	/* The entry is in no tree if it is its own parent: a memfd, or a mount that was removed. */
	path->dentry = parent == dentry ? NULL : parent;
	return true;
}

#endif
