"""What every confined program on macOS may do whatever its policy: the constant part of a Seatbelt profile.

Everything not named is refused (`deny default`). The names are those of Apple's own profiles in
/System/Library/Sandbox/Profiles; what is left out on purpose: LaunchServices (`open` would start programs outside),
the security server (the keychain), the pasteboard, Apple events, the name service (only the proxy looks names up).
"""

BASE = """\
(version 1)
(deny default)

; processes: its own, and nobody else's
(allow process-exec)
(allow process-fork)
(allow signal (target same-sandbox))
(allow process-info* (target same-sandbox))

; reading, but for what is hidden below
(allow file-read*)
(allow file-map-executable)

; devices that hold nothing
(allow file-write-data
  (literal "/dev/null")
  (literal "/dev/zero")
  (literal "/dev/tty")
  (literal "/dev/dtracehelper"))
(allow file-ioctl
  (literal "/dev/null")
  (literal "/dev/tty")
  (literal "/dev/dtracehelper"))

; terminals: none of other programs, whose keys could be read; those it makes itself
(deny file-read-data (regex #"^/dev/(ttys|tty\\.|cu\\.)"))
(allow pseudo-tty)
(allow file-read* file-write* file-ioctl (literal "/dev/ptmx"))
(allow file-read* file-write*
  (require-all
    (regex #"^/dev/ttys[0-9]+$")
    (extension "com.apple.sandbox.pty")))
(allow file-ioctl (regex #"^/dev/ttys[0-9]+$"))

; semaphores of process pools; shared memory as Python's pools and OpenMP name it; what the system shows everybody
(allow ipc-posix-sem)
(allow ipc-posix-shm*
  (ipc-posix-name-regex #"^/psm_[0-9a-f]+$")
  (ipc-posix-name-regex #"^/__KMP_REGISTERED_LIB_[0-9]+$"))
(allow ipc-posix-shm-read* (ipc-posix-name "apple.shm.notification_center"))

; facts about the machine
(allow sysctl-read
  (sysctl-name "hw.activecpu")
  (sysctl-name "hw.byteorder")
  (sysctl-name "hw.cacheconfig")
  (sysctl-name "hw.cachelinesize")
  (sysctl-name "hw.cachelinesize_compat")
  (sysctl-name "hw.cachesize")
  (sysctl-name "hw.cpufamily")
  (sysctl-name "hw.cpusubfamily")
  (sysctl-name "hw.cpufrequency")
  (sysctl-name "hw.cpufrequency_compat")
  (sysctl-name "hw.cpusubtype")
  (sysctl-name "hw.cputype")
  (sysctl-name "hw.logicalcpu")
  (sysctl-name "hw.logicalcpu_max")
  (sysctl-name "hw.machine")
  (sysctl-name "hw.memsize")
  (sysctl-name "hw.model")
  (sysctl-name "hw.ncpu")
  (sysctl-name "hw.nperflevels")
  (sysctl-name "hw.packages")
  (sysctl-name "hw.pagesize")
  (sysctl-name "hw.pagesize_compat")
  (sysctl-name "hw.physicalcpu")
  (sysctl-name "hw.physicalcpu_max")
  (sysctl-name "hw.tbfrequency_compat")
  (sysctl-name "hw.vectorunit")
  (sysctl-name "kern.argmax")
  (sysctl-name "kern.hostname")
  (sysctl-name "kern.iossupportversion")
  (sysctl-name "kern.maxfiles")
  (sysctl-name "kern.maxfilesperproc")
  (sysctl-name "kern.maxproc")
  (sysctl-name "kern.ngroups")
  (sysctl-name "kern.osproductversion")
  (sysctl-name "kern.osrelease")
  (sysctl-name "kern.ostype")
  (sysctl-name "kern.osvariant_status")
  (sysctl-name "kern.osversion")
  (sysctl-name "kern.secure_kernel")
  (sysctl-name "kern.usrstack64")
  (sysctl-name "kern.version")
  (sysctl-name "security.mac.lockdown_mode_state")
  (sysctl-name "sysctl.proc_cputype")
  (sysctl-name "vm.loadavg")
  (sysctl-name-regex #"^hw\\.(optional|perflevel[0-9]|l[123][di]?cachesize)")
  (sysctl-name-regex #"^kern\\.proc\\.(pid|pgrp)\\.")
  (sysctl-name-regex #"^machdep\\.(cpu|ptrauth_enabled)")
  (sysctl-name-regex #"^net\\.routetable"))
(allow system-socket (socket-domain AF_ROUTE) (socket-domain AF_UNIX))

; services: who is this user, where is their temporary folder, is the machine about to sleep, a place to log to
(allow iokit-open (iokit-registry-entry-class "RootDomainUserClient"))
(allow mach-lookup
  (global-name "com.apple.bsd.dirhelper")
  (global-name "com.apple.logd")
  (global-name "com.apple.PowerManagement.control")
  (global-name "com.apple.system.logger")
  (global-name "com.apple.system.notification_center")
  (global-name "com.apple.system.opendirectoryd.libinfo")
  (global-name "com.apple.system.opendirectoryd.membership"))
"""

# Go programs verify certificates nowhere else: without it, `x509: OSStatus -26276`.
TRUST_SERVICE = """
; the trust service, which verifies certificates for programs that have no store of their own (Go, curl of the system)
(allow mach-lookup
  (global-name "com.apple.trustd")
  (global-name "com.apple.trustd.agent"))
"""

NETWORK_OPEN = """
; the whole network
(allow network-outbound (remote ip "*:*") (remote unix-socket (literal "/private/var/run/mDNSResponder")))
(allow network-bind network-inbound (local ip "*:*"))
(allow mach-lookup
  (global-name "com.apple.dnssd.service")
  (global-name "com.apple.SystemConfiguration.configd")
  (global-name "com.apple.SystemConfiguration.DNSConfiguration"))
"""

# danger-full-access with a network that is not the whole one: files are open, the network is not.
OPEN_BUT_NETWORK = """\
(version 1)
(allow default)
(deny network-outbound (remote ip "*:*"))
(deny network-outbound (remote unix-socket (literal "/private/var/run/mDNSResponder")))
(deny network-bind network-inbound (local ip "*:*"))
(deny mach-lookup
  (global-name "com.apple.dnssd.service")
  (global-name "com.apple.nsurlsessiond")
  (global-name "com.apple.coreservices.launchservicesd"))
"""

LOCAL_BINDING = """
; servers on localhost, and connections to any port there
(allow network-bind network-inbound (local ip "localhost:*"))
(allow network-outbound (remote ip "localhost:*"))
"""
