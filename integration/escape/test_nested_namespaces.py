"""A user namespace of one's own gives every capability in it, and with those much of the kernel to attack."""

CODE = """
import platform
X86 = platform.machine() == 'x86_64'
FLAGS = {'user': 0x10000000, 'mount': 0x20000, 'net': 0x40000000, 'pid': 0x20000000, 'ipc': 0x08000000,
         'uts': 0x04000000, 'cgroup': 0x02000000, 'time': 0x80}
def forked(function, *arguments):
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        try: text = str(function(*arguments))
        except OSError as error: text = errno.errorcode[error.errno]
        os.write(writer, text.encode()); os._exit(0)
    os.close(writer); os.waitpid(child, 0)
    return os.read(reader, 64).decode()
for name, flag in FLAGS.items():
    said['unshare ' + name] = forked(call, 'unshare', flag)
    said['unshare user and ' + name] = forked(call, 'unshare', flag | FLAGS['user'])
def clone(flags):
    result = syscall(56 if X86 else 220, ctypes.c_ulong(flags | 17), None, None, None, None)
    if result == 0: os._exit(0)
    os.waitpid(result, 0)
    return 'cloned'
said['clone user'] = forked(clone, FLAGS['user'])
class Arguments(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in
                ('flags', 'pidfd', 'child', 'parent', 'exit', 'stack', 'size', 'tls')]
def clone3():
    given = Arguments(flags=FLAGS['user'], exit=17)
    result = syscall(435, ctypes.byref(given), ctypes.sizeof(given))
    if result == 0: os._exit(0)
    os.waitpid(result, 0)
    return 'cloned'
said['clone3 user'] = forked(clone3)
def join(): return call('setns', os.open('/proc/self/ns/user', os.O_RDONLY), FLAGS['user'])
said['join'] = forked(join)
"""


def test_no_further_namespace(way):
    probe = way(CODE)
    inside = probe.inside()
    assert len(inside) == 19
    assert {inside.pop("clone3 user")} == {"ENOSYS"}
    assert set(inside.values()) == {"EPERM"}, inside
    outside = probe.outside()
    assert outside["unshare user"] == "0"
    assert {outside["clone user"], outside["clone3 user"]} == {"cloned"}


def test_no_further_user_namespace_by_the_kernels_own_limit(way):
    """The second lock: without the filter there is still none to be had."""
    inside = way(CODE).inside(without_filter=True)
    made = {name for name in inside if "user" in name and inside[name] in ("0", "cloned")}
    assert made == set()
