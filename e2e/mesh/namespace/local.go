package namespace

import (
	"errors"
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"
)

// loopback is the one interface of a new namespace.
const loopback = "lo"

// alias is the loopback interface's second address, in the terms of the old
// interface to the kernel, which needs no netlink.
const alias = loopback + ":pods"

// MakeLocal brings the loopback interface up and makes every address of an IPv4
// prefix local. On the loopback interface an address stands for its whole prefix,
// as 127.0.0.1/8 does.
//
// It refuses to work outside of a namespace that [Run] made: there it would take
// the addresses away from the network of the machine.
func MakeLocal(prefix netip.Prefix) error {
	if !Inside() {
		return errors.New("this program was not started by namespace.Run: the machine's own network stays as it is")
	}
	if !prefix.Addr().Is4() {
		return fmt.Errorf("prefix %s: only IPv4 can be made local", prefix)
	}
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open a socket: %w", err)
	}
	defer unix.Close(socket)
	if err := bringUp(socket); err != nil {
		return err
	}
	prefix = prefix.Masked()
	if err := setAddress(socket, unix.SIOCSIFADDR, prefix.Addr().Next()); err != nil {
		return fmt.Errorf("address of %s: %w", prefix, err)
	}
	if err := setAddress(socket, unix.SIOCSIFNETMASK, mask(prefix.Bits())); err != nil {
		return fmt.Errorf("mask of %s: %w", prefix, err)
	}
	return nil
}

func bringUp(socket int) error {
	request, err := unix.NewIfreq(loopback)
	if err != nil {
		return err
	}
	if err := unix.IoctlIfreq(socket, unix.SIOCGIFFLAGS, request); err != nil {
		return fmt.Errorf("read the state of interface %s: %w", loopback, err)
	}
	request.SetUint16(request.Uint16() | unix.IFF_UP)
	if err := unix.IoctlIfreq(socket, unix.SIOCSIFFLAGS, request); err != nil {
		return fmt.Errorf("bring up interface %s: %w", loopback, err)
	}
	return nil
}

func setAddress(socket int, what uint, address netip.Addr) error {
	request, err := unix.NewIfreq(alias)
	if err != nil {
		return err
	}
	if err := request.SetInet4Addr(address.AsSlice()); err != nil {
		return err
	}
	return unix.IoctlIfreq(socket, what, request)
}

// mask is the network mask of that many bits as an address.
func mask(bits int) netip.Addr {
	m := ^uint32(0) << (32 - bits)
	return netip.AddrFrom4([4]byte{byte(m >> 24), byte(m >> 16), byte(m >> 8), byte(m)})
}
