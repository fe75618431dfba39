package leases

import (
	"net"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// link is the network between one manager and the API server. While it is cut,
// nothing passes and nobody is told; what was under way is lost.
type link struct {
	listener net.Listener
	target   string

	mu    sync.Mutex
	lost  chan struct{} // closed when the link is cut, another one once it is mended
	isCut bool
	ends  []*net.TCPConn // of the connections since then
}

// newLink makes a link to the target that lasts as long as the spec.
func newLink(target string) *link {
	GinkgoHelper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	l := &link{listener: listener, target: target, lost: make(chan struct{})}
	go l.serve()
	DeferCleanup(func() {
		_ = listener.Close()
		l.mend()
	})
	return l
}

func (l *link) address() string { return l.listener.Addr().String() }

func (l *link) serve() {
	for {
		accepted, err := l.listener.Accept()
		if err != nil {
			return
		}
		near := accepted.(*net.TCPConn)
		dialled, err := net.Dial("tcp", l.target)
		if err != nil {
			reset(near)
			continue
		}
		far := dialled.(*net.TCPConn)
		l.mu.Lock()
		l.ends = append(l.ends, near, far)
		go carry(l.lost, near, far)
		go carry(l.lost, far, near)
		l.mu.Unlock()
	}
}

// carry passes on what comes from one end to the other, until it is lost. Then nobody
// learns of an end either.
func carry(lost <-chan struct{}, from, to *net.TCPConn) {
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		select {
		case <-lost:
			return
		default:
		}
		if err == nil {
			_, err = to.Write(buffer[:n])
		}
		if err != nil {
			reset(from, to)
			return
		}
	}
}

func (l *link) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.isCut = true
	close(l.lost)
}

// mend mends the link: new connections are possible, old ones are found dead.
func (l *link) mend() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.isCut {
		l.isCut, l.lost = false, make(chan struct{})
	}
	reset(l.ends...)
	l.ends = nil
}

func reset(ends ...*net.TCPConn) {
	for _, c := range ends {
		_ = c.SetLinger(0)
		_ = c.Close()
	}
}
