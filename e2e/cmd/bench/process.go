package main

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// consumption is what a process uses of the machine.
type consumption struct {
	// resident is VmRSS in bytes: what the kernel holds for it in memory. file is the
	// part of it that is pages of the binary, which the kernel may drop at any time and
	// which processes share; peak is the most that resident ever was.
	resident, file, peak int64
	// cpu is the time on all cores since the start.
	cpu time.Duration
}

// tick is the unit of times in /proc/PID/stat: USER_HZ, which is 100 on every
// architecture that Go runs on.
const tick = time.Second / 100

// usageOf reads /proc.
func usageOf(pid int) (consumption, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return consumption{}, err
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return consumption{}, err
	}
	return parseUsage(status, stat)
}

func parseUsage(status, stat []byte) (consumption, error) {
	var u consumption
	var err error
	for _, want := range []struct {
		field string
		into  *int64
	}{{"VmRSS", &u.resident}, {"RssFile", &u.file}, {"VmHWM", &u.peak}} {
		if *want.into, err = sizeIn(status, want.field); err != nil {
			return consumption{}, err
		}
	}
	u.cpu, err = cpuIn(stat)
	return u, err
}

// sizeIn finds a field such as "VmRSS:     51564 kB".
func sizeIn(status []byte, field string) (int64, error) {
	for line := range bytes.Lines(status) {
		name, value, _ := strings.Cut(string(line), ":")
		if name != field {
			continue
		}
		kilobytes, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("/proc/PID/status: %s: %w", field, err)
		}
		return kilobytes << 10, nil
	}
	return 0, fmt.Errorf("/proc/PID/status has no %s", field)
}

// cpuIn adds the fields utime and stime, the 14th and 15th. The second is the
// program's name in brackets, which may hold spaces.
func cpuIn(stat []byte) (time.Duration, error) {
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 13 {
		return 0, fmt.Errorf("/proc/PID/stat: %q is too short", stat)
	}
	var sum time.Duration
	for _, field := range fields[11:13] {
		ticks, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("/proc/PID/stat: %w", err)
		}
		sum += time.Duration(ticks) * tick
	}
	return sum, nil
}
