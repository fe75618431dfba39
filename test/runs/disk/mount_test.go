package disk

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/ensign-operator/ensign/test/harness"
)

// page is what a tmpfs gives out at least.
const page = 4 << 10

// disk is a file system in memory with so many pages and inodes.
type disk struct{ path string }

// newDisk mounts one for the spec. Its root takes an inode.
func newDisk(pages, inodes int) disk {
	GinkgoHelper()
	// The path is short, because sockets are made below it.
	path, err := os.MkdirTemp("/tmp", "disk")
	Expect(err).NotTo(HaveOccurred())
	Expect(syscall.Mount("tmpfs", path, "tmpfs", 0, options(pages, inodes))).To(Succeed())
	DeferCleanup(func() {
		Expect(syscall.Unmount(path, syscall.MNT_DETACH)).To(Succeed())
		Expect(os.Remove(path)).To(Succeed())
	})
	return disk{path}
}

func options(pages, inodes int) string {
	return fmt.Sprintf("size=%d,nr_inodes=%d,mode=0700", pages*page, inodes)
}

// resize changes the size while the file system is in use.
func (d disk) resize(pages, inodes int) {
	GinkgoHelper()
	Expect(syscall.Mount("tmpfs", d.path, "tmpfs", syscall.MS_REMOUNT, options(pages, inodes))).To(Succeed())
}

// fill takes all the space that is left, up to the last byte, by a file that
// free removes.
func (d disk) fill() {
	GinkgoHelper()
	f, err := os.OpenFile(d.filler(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	Expect(err).NotTo(HaveOccurred())
	defer func() { Expect(f.Close()).To(Succeed()) }()
	for size := 1 << 20; size > 0; size /= 2 {
		for err = nil; err == nil; {
			_, err = f.Write(make([]byte, size))
		}
		Expect(errors.Is(err, syscall.ENOSPC)).To(BeTrue(), "got %v", err)
	}
}

func (d disk) free() {
	GinkgoHelper()
	Expect(os.Remove(d.filler())).To(Succeed())
}

func (d disk) filler() string { return filepath.Join(d.path, "filler") }

// files lists what is below the directory, without directories that are empty.
func files(dir string) []string {
	GinkgoHelper()
	found, err := harness.Files(dir)
	Expect(err).NotTo(HaveOccurred())
	return found
}
