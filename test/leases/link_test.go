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
	isCut bool
	pairs map[*pair]bool
}

// pair is one connection over a link.
type pair struct {
	near, far *net.TCPConn
	once      sync.Once
	lost      chan struct{} // closed when its link was cut
}

// newLink makes a link to the target that lasts as long as the spec.
func newLink(target string) *link {
	GinkgoHelper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	l := &link{listener: listener, target: target, pairs: map[*pair]bool{}}
	go l.serve()
	DeferCleanup(l.close)
	return l
}

func (l *link) address() string { return l.listener.Addr().String() }

func (l *link) serve() {
	for {
		near, err := l.listener.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", l.target)
		if err != nil {
			_ = near.Close()
			continue
		}
		p := &pair{near: near.(*net.TCPConn), far: far.(*net.TCPConn), lost: make(chan struct{})}
		l.mu.Lock()
		l.pairs[p] = true
		if l.isCut {
			p.lose()
		}
		l.mu.Unlock()
		go l.carry(p, p.near, p.far)
		go l.carry(p, p.far, p.near)
	}
}

// carry passes on what comes from one end to the other.
func (l *link) carry(p *pair, from, to *net.TCPConn) {
	defer func() {
		select {
		case <-p.lost: // Nobody learns of an end either.
		default:
			l.end(p)
		}
	}()
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		select {
		case <-p.lost:
			return
		default:
		}
		if err != nil {
			return
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
	}
}

// cut cuts the link.
func (l *link) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.isCut = true
	for p := range l.pairs {
		p.lose()
	}
}

// mend mends the link: new connections are possible, old ones are found dead.
func (l *link) mend() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.isCut = false
	for p := range l.pairs {
		p.reset()
		delete(l.pairs, p)
	}
}

func (l *link) close() {
	_ = l.listener.Close()
	l.mend()
}

func (l *link) end(p *pair) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p.reset()
	delete(l.pairs, p)
}

func (p *pair) lose() { p.once.Do(func() { close(p.lost) }) }

func (p *pair) reset() {
	for _, c := range []*net.TCPConn{p.near, p.far} {
		_ = c.SetLinger(0)
		_ = c.Close()
	}
}
