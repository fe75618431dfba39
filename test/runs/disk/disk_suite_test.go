package disk

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ensign-operator/ensign/test/controlplane"
	"github.com/ensign-operator/ensign/test/harness"
	"github.com/ensign-operator/ensign/test/harness/script"
	"github.com/ensign-operator/ensign/test/harness/site"
)

// inside says that the process may mount without anybody else seeing it.
const inside = "ENSIGN_TEST_MAY_MOUNT"

var (
	ground *site.Ground
	kind   = schema.GroupKind{Group: "disk.ensign.io", Kind: "Item"}
)

// TestMain runs the tests in a mount namespace, so that no mount outlives them;
// who may not have one is root of a user namespace, too.
func TestMain(m *testing.M) {
	script.Main(play)
	if runs := os.Getenv(endless); runs != "" {
		panic(prepareEndlessly(runs))
	}
	if os.Getenv(inside) != "" {
		if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
			panic(err)
		}
		os.Exit(m.Run())
	}
	var err error
	for _, flags := range []uintptr{syscall.CLONE_NEWNS, syscall.CLONE_NEWNS | syscall.CLONE_NEWUSER} {
		var code int
		if code, err = runInside(flags); err == nil {
			os.Exit(code)
		}
	}
	fmt.Fprintln(os.Stderr, "these tests need a mount namespace, by CAP_SYS_ADMIN or by a user namespace:", err)
	os.Exit(1)
}

// runInside runs the tests as a process in new namespaces. The error says that
// there are none to be had.
func runInside(flags uintptr) (int, error) {
	runtime.LockOSThread() // The process gets a signal when this thread ends.
	tests := exec.Command("/proc/self/exe", os.Args[1:]...)
	tests.Env = append(os.Environ(), inside+"=1")
	tests.Stdin, tests.Stdout, tests.Stderr = os.Stdin, os.Stdout, os.Stderr
	tests.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Cloneflags: flags}
	if flags&syscall.CLONE_NEWUSER != 0 {
		tests.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Geteuid(), Size: 1}}
		tests.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getegid(), Size: 1}}
	}
	if err := tests.Start(); err != nil {
		return 0, err
	}
	err := tests.Wait()
	if exit := (&exec.ExitError{}); errors.As(err, &exit) {
		return max(exit.ExitCode(), 1), nil
	}
	return 0, err
}

func TestDisk(t *testing.T) {
	site.Run(t, "disk", harness.WaitTimeout, 100*time.Millisecond)
}

var _ = BeforeSuite(func(ctx context.Context) {
	ground = site.Prepare(ctx, controlplane.Options{})
	ground.Define(ctx, harness.Definition(kind))
})
