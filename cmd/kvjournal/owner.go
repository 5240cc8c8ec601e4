package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// nobody is the user whom a kernel names where it cannot tell the owner.
const nobody = 65534

// becomeOwner makes a command that root runs on a directory of somebody else go on as that user: what root would leave behind in it (an
// index that it brings up, say) could not be opened by the next recorder, and what its owner puts there could lead root astray.
// Root stays where it is not allowed to change, as in some containers.
func becomeOwner(dir string) (became bool, err error) {
	info, err := os.Stat(dir)
	if err != nil {
		return false, nil // the command says so itself
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !changesTo(os.Geteuid(), owner.Uid) {
		return false, nil
	}
	uid, gid := int(owner.Uid), int(owner.Gid)
	if err := errors.Join(syscall.Setgroups([]int{gid}), syscall.Setresgid(gid, gid, gid)); err != nil {
		return false, nil
	}
	if err := syscall.Setresuid(uid, uid, uid); err != nil {
		return false, fmt.Errorf("becoming the owner of %s, user %d: %w; run it as that user", dir, uid, err)
	}
	return true, nil
}

// changesTo decides whether a user goes on as the owner of the directory.
func changesTo(user int, owner uint32) bool {
	return user == 0 && owner != 0 && owner != nobody
}

// asOwner tells root why it was refused something.
func asOwner(err error, dir string, became bool) error {
	if !became || !errors.Is(err, fs.ErrPermission) {
		return err
	}
	return fmt.Errorf("%w (run by root, the command goes on as the owner of %s, user %d: give that user the right)", err, dir, os.Getuid())
}
