package thief

import (
	"bufio"
	"encoding/binary"
	"io"
)

// Commands of clients: the first byte of their packets.
const (
	commandQuit  = 0x01
	commandQuery = 0x03
)

// capabilities are those of a server that is asked for files: CLIENT_LONG_PASSWORD,
// FOUND_ROWS, LONG_FLAG, CONNECT_WITH_DB, LOCAL_FILES, PROTOCOL_41, TRANSACTIONS,
// SECURE_CONNECTION, MULTI_STATEMENTS, MULTI_RESULTS and PLUGIN_AUTH.
const capabilities = 1<<0 | 1<<1 | 1<<2 | 1<<3 | 1<<7 | 1<<9 | 1<<13 | 1<<15 | 1<<16 | 1<<17 | 1<<19

// utf8mb4 is the number of a collation.
const utf8mb4 = 45

// autocommit is the status flag SERVER_STATUS_AUTOCOMMIT.
const autocommit = 2

// wire reads and writes packets: three bytes of length, one that counts, and as many.
type wire struct {
	reader *bufio.Reader
	writer io.Writer
	number byte
}

func (w *wire) read() ([]byte, error) {
	head := make([]byte, 4)
	if _, err := io.ReadFull(w.reader, head); err != nil {
		return nil, err
	}
	w.number = head[3] + 1
	packet := make([]byte, int(head[0])|int(head[1])<<8|int(head[2])<<16)
	_, err := io.ReadFull(w.reader, packet)
	return packet, err
}

// write writes a packet of a few hundred bytes at most.
func (w *wire) write(packet []byte) error {
	head := binary.LittleEndian.AppendUint32(nil, uint32(len(packet)))
	head[3] = w.number
	w.number++
	_, err := w.writer.Write(append(head, packet...))
	return err
}

// writeTable writes a result whose columns are texts.
func (w *wire) writeTable(table [][]string) error {
	packets := [][]byte{{byte(len(table[0]))}}
	for _, name := range table[0] {
		column := lengthed("def", "", "", "", name, name)
		column = append(column, 0x0c, utf8mb4, 0, 0, 1, 0, 0, 0xfd, 0, 0, 0, 0, 0)
		packets = append(packets, column)
	}
	packets = append(packets, end())
	for _, row := range table[1:] {
		packets = append(packets, lengthed(row...))
	}
	for _, packet := range append(packets, end()) {
		if err := w.write(packet); err != nil {
			return err
		}
	}
	return nil
}

// lengthed are texts, each after its length; none is longer than 250 bytes.
func lengthed(texts ...string) (packet []byte) {
	for _, text := range texts {
		packet = append(append(packet, byte(len(text))), text...)
	}
	return packet
}

func okay() []byte { return []byte{0x00, 0, 0, autocommit, 0, 0, 0} }

func end() []byte { return []byte{0xfe, 0, 0, autocommit, 0} }

// greeting is what a server says first.
func greeting(version string) []byte {
	const method, nonce = "mysql_native_password", "01234567890123456789"
	packet := append([]byte{10}, version...)
	packet = append(packet, 0, 1, 0, 0, 0)
	packet = append(packet, nonce[:8]...)
	packet = append(packet, 0)
	packet = binary.LittleEndian.AppendUint16(packet, capabilities&0xffff)
	packet = append(packet, utf8mb4, autocommit, 0)
	packet = binary.LittleEndian.AppendUint16(packet, capabilities>>16)
	packet = append(packet, byte(len(nonce)+1))
	packet = append(packet, make([]byte, 10)...)
	packet = append(packet, nonce[8:]...)
	packet = append(packet, 0)
	return append(append(packet, method...), 0)
}
