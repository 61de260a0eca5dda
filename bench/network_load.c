/* Source and sink of bench/network.py: an origin server and a load generator, written so that neither is the bottleneck.
 *
 *   network_load origin   prints its port on 127.0.0.1, then serves until its standard input ends
 *   network_load client   prints http_proxy's value, then one JSON line for each line of its standard input
 *
 * Bodies come from sendfile(2) and are thrown away unread (MSG_TRUNC, tcp(7)), one epoll loop each. network_load.py says
 * what a line holds and speaks the same, for machines without a C compiler.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* A body longer than the processor's caches: a proxy that copies pays for it as it would with a file. */
enum { BLOCK = 1 << 20, BODY = 64 * BLOCK, HEAD = 8192, EVENTS = 256, MOST = 8192 /* connections */ };

static char block[BLOCK];
static int one = 1;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void more_descriptors(void) {
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

static void watch(int poll, int operation, int fd, unsigned events, void *what) {
    struct epoll_event event = {.events = events, .data.ptr = what};
    epoll_ctl(poll, operation, fd, &event);
}

/* --- the origin ------------------------------------------------------------------------------------------------- */

struct served {
    int fd, writing;
    size_t have;
    long left; /* bytes of the body still to send */
    char head[HEAD];
};

static char answer[512];
static size_t answer_length;
static int body; /* memory file, BODY bytes */

static void prepare_answers(void) {
    static const char text[] = "Hello, world. A hundred bytes of body, as a small answer of an interface might have them: 0123456789.\n";
    answer_length = (size_t)sprintf(answer, "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %zu\r\n\r\n%s",
                                    sizeof text - 1, text);
    body = memfd_create("body", 0);
    for (int written = 0; written < BODY; written += BLOCK) {
        if (body < 0 || write(body, block, BLOCK) != BLOCK) {
            perror("memfd_create");
            exit(1);
        }
    }
}

/* Answers what was asked; 0 where the connection is to be closed. */
static int serve(struct served *c) {
    for (;;) {
        while (c->left > 0) {
            off_t from = c->left % BODY;
            size_t size = c->left < BLOCK ? (size_t)c->left : BLOCK;
            ssize_t sent = sendfile(c->fd, body, &from, size < (size_t)(BODY - from) ? size : (size_t)(BODY - from));
            if (sent <= 0) {
                return sent < 0 && errno == EAGAIN;
            }
            c->left -= sent;
            if ((size_t)sent < size && c->left > 0) {
                return 1; /* the others' turn */
            }
        }
        char *end = memmem(c->head, c->have, "\r\n\r\n", 4);
        if (end == NULL) {
            ssize_t n = recv(c->fd, c->head + c->have, HEAD - c->have, 0);
            if (n <= 0) {
                return n < 0 && errno == EAGAIN;
            }
            c->have += (size_t)n;
            continue;
        }
        char *path = memmem(c->head, (size_t)(end - c->head), "/bytes/", 7);
        size_t used = (size_t)(end + 4 - c->head);
        if (path != NULL) {
            char head[128];
            c->left = atol(path + 7);
            int length = sprintf(head, "HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nContent-Length: %ld\r\n\r\n", c->left);
            if (send(c->fd, head, (size_t)length, MSG_NOSIGNAL) != length) {
                return 0;
            }
        } else if (send(c->fd, answer, answer_length, MSG_NOSIGNAL) != (ssize_t)answer_length) {
            return 0;
        }
        memmove(c->head, c->head + used, c->have - used);
        c->have -= used;
    }
}

static int origin(void) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    if (bind(listener, (void *)&address, length) || listen(listener, 4096) ||
        getsockname(listener, (void *)&address, &length)) {
        perror("listen");
        return 1;
    }
    prepare_answers();
    int poll = epoll_create1(0);
    static int input; /* standard input, by address */
    watch(poll, EPOLL_CTL_ADD, listener, EPOLLIN, NULL);
    watch(poll, EPOLL_CTL_ADD, 0, EPOLLIN, &input);
    printf("%d\n", ntohs(address.sin_port));
    fflush(stdout);
    for (;;) {
        struct epoll_event events[EVENTS];
        int count = epoll_wait(poll, events, EVENTS, -1);
        for (int i = 0; i < count; i++) {
            struct served *c = events[i].data.ptr;
            if ((void *)c == &input) {
                return 0;
            }
            if (c == NULL) {
                int fd;
                while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0) {
                    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
                    c = malloc(sizeof *c);
                    c->fd = fd;
                    c->have = 0;
                    c->left = c->writing = 0;
                    watch(poll, EPOLL_CTL_ADD, fd, EPOLLIN, c);
                }
                continue;
            }
            if (!serve(c)) {
                close(c->fd);
                free(c);
                continue;
            }
            int writing = c->left > 0;
            if (writing != c->writing) {
                c->writing = writing;
                watch(poll, EPOLL_CTL_MOD, c->fd, writing ? EPOLLOUT : EPOLLIN, c);
            }
        }
    }
}

/* --- the load generator ------------------------------------------------------------------------------------------ */

enum after { CLOSE, KEEP, HOLD };
enum step { CONNECTING, TUNNELLING, ASKING };

struct client {
    int fd, kept; /* kept: an answer came on this connection before */
    enum step step;
    int in_body;
    size_t have;
    long left; /* bytes of the body still to come; -1: until the connection ends */
    double since;
    char head[HEAD];
};

static struct {
    char host[64], authority[256], path[128];
    int port, tunnel, absolute, status, concurrency;
    enum after after;
    long count;
    double seconds;
    char connect[HEAD], request[HEAD];
    int connect_length, request_length;
} job;

static int poll_, held[MOST], holding;
static long started, done, bad, bytes;
static double *times, last;
static char said[200];

static void begin(struct client *c);

static void fail(struct client *c, const char *why) {
    bad++;
    if (!said[0]) {
        size_t n = 0;
        for (; why[n] >= ' ' && n < sizeof said - 1; n++) {
            said[n] = why[n] == '"' || why[n] == '\\' ? '\'' : why[n];
        }
        said[n] = 0;
    }
    close(c->fd);
    c->fd = -1;
    if (bad > 100) {
        started = job.count; /* it will not get better */
    }
    begin(c);
}

/* The connection was no longer one before this request's answer began: an ordinary end where connections are kept
   (RFC 9112 §9.3.1), so the request goes on a new one. */
static void again(struct client *c) {
    double since = c->since;
    close(c->fd);
    c->fd = -1;
    started--;
    begin(c);
    c->since = since;
}

static void ask(struct client *c, const char *text, int length, enum step step) {
    c->step = step;
    c->have = 0;
    c->in_body = 0;
    c->left = -1;
    if (send(c->fd, text, (size_t)length, MSG_NOSIGNAL) != length) {
        if (c->kept) {
            again(c);
            return;
        }
        fail(c, "the proxy took no request");
    }
}

static void begin(struct client *c) {
    if (started >= job.count) {
        return;
    }
    started++;
    c->kept = 0;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((unsigned short)job.port)};
    inet_pton(AF_INET, job.host, &address.sin_addr);
    c->since = now();
    c->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    c->step = CONNECTING;
    if (connect(c->fd, (void *)&address, sizeof address) && errno != EINPROGRESS) {
        fail(c, strerror(errno));
        return;
    }
    watch(poll_, EPOLL_CTL_ADD, c->fd, EPOLLOUT, c);
}

static void finish(struct client *c, int lasting) {
    last = now();
    times[done++] = last - c->since;
    if (job.after == KEEP && lasting) {
        if (started < job.count) {
            started++;
            c->kept = 1;
            c->since = last;
            ask(c, job.request, job.request_length, ASKING);
        }
        return;
    }
    if (job.after == HOLD) {
        epoll_ctl(poll_, EPOLL_CTL_DEL, c->fd, NULL);
        held[holding++] = c->fd;
    } else {
        close(c->fd);
    }
    c->fd = -1;
    begin(c);
}

static void receive(struct client *c) {
    for (;;) {
        if (c->in_body) {
            size_t room = c->left >= 0 && c->left < BLOCK ? (size_t)c->left : BLOCK;
            ssize_t n = recv(c->fd, block, room, MSG_TRUNC);
            if (n == 0 && c->left < 0) {
                finish(c, 0);
                return;
            }
            if (n <= 0) {
                if (n == 0 || errno != EAGAIN) {
                    fail(c, "broken off inside an answer");
                }
                return;
            }
            bytes += n;
            if (c->left < 0) {
                continue;
            }
            c->left -= n;
            if (c->left == 0) {
                finish(c, 1);
                return;
            }
            if ((size_t)n < room) {
                return;
            }
            continue;
        }
        ssize_t n = recv(c->fd, c->head + c->have, HEAD - 1 - c->have, 0);
        if (n <= 0) {
            if (c->kept && !c->have && (n == 0 || errno == ECONNRESET)) {
                again(c);
            } else if (n == 0 || errno != EAGAIN) {
                fail(c, n == 0 ? "closed without an answer" : strerror(errno));
            }
            return;
        }
        c->have += (size_t)n;
        c->head[c->have] = 0;
        char *end = memmem(c->head, c->have, "\r\n\r\n", 4);
        if (end == NULL) {
            if (c->have == HEAD - 1) {
                fail(c, "an endless head");
                return;
            }
            continue;
        }
        int status = c->have > 12 ? atoi(c->head + 9) : 0;
        int last_step = c->step == ASKING || !job.path[0];
        if (status != (last_step ? job.status : 200)) {
            fail(c, c->head);
            return;
        }
        if (c->step == TUNNELLING) {
            if (last_step) {
                finish(c, 0);
            } else {
                ask(c, job.request, job.request_length, ASKING);
            }
            return;
        }
        if (memmem(c->head, (size_t)(end - c->head), "chunked", 7) != NULL) { /* short ones only: refusals */
            if (memmem(end + 2, (size_t)(c->head + c->have - end - 2), "\r\n0\r\n\r\n", 7) != NULL) {
                bytes += (long)(c->have - (size_t)(end + 4 - c->head));
                finish(c, 1);
                return;
            }
            continue;
        }
        *end = 0;
        char *length = strcasestr(c->head, "\r\ncontent-length:");
        int lasting = strcasestr(c->head, "\r\nconnection: close") == NULL;
        long here = (long)(c->have - (size_t)(end + 4 - c->head));
        bytes += here;
        if (length != NULL) {
            c->left = atol(length + 17) - here;
            if (c->left <= 0) {
                finish(c, lasting);
                return;
            }
        }
        c->in_body = 1;
    }
}

static void ready(struct client *c) {
    if (c->step != CONNECTING) {
        receive(c);
        return;
    }
    int error = 0;
    socklen_t size = sizeof error;
    getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &error, &size);
    if (error) {
        fail(c, strerror(error));
        return;
    }
    watch(poll_, EPOLL_CTL_MOD, c->fd, EPOLLIN, c);
    if (job.tunnel) {
        ask(c, job.connect, job.connect_length, TUNNELLING);
    } else {
        ask(c, job.request, job.request_length, ASKING);
    }
}

static int by_time(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void run(void) {
    struct client *clients = calloc((size_t)job.concurrency, sizeof *clients);
    times = malloc(sizeof(double) * (size_t)(job.count + 1));
    poll_ = epoll_create1(0);
    started = done = bad = bytes = 0;
    said[0] = 0;
    double start = last = now(), end = start + job.seconds;
    for (int i = 0; i < job.concurrency; i++) {
        clients[i].fd = -1;
        begin(&clients[i]);
    }
    int cut = 0;
    while (done + bad < started) {
        struct epoll_event events[EVENTS];
        int count = epoll_wait(poll_, events, EVENTS, 50);
        for (int i = 0; i < count; i++) {
            struct client *c = events[i].data.ptr;
            if (c->fd >= 0) {
                ready(c);
            }
        }
        if (now() >= end) {
            cut = 1;
            last = now();
            break;
        }
    }
    for (int i = 0; i < job.concurrency; i++) {
        if (clients[i].fd >= 0) {
            close(clients[i].fd);
        }
    }
    close(poll_);
    qsort(times, (size_t)done, sizeof(double), by_time);
    printf("{\"done\": %ld, \"bad\": %ld, \"bytes\": %ld, \"seconds\": %.6f, \"cut\": %s, \"p50_ms\": %.4f, \"p99_ms\": %.4f, \"said\": \"%s\"}\n",
           done, bad, bytes, last - start, cut ? "true" : "false", done ? times[done / 2] * 1e3 : 0.0,
           done ? times[done * 99 / 100] * 1e3 : 0.0, said);
    fflush(stdout);
    free(times);
    free(clients);
}

static int client(void) {
    static char line[4 * HEAD];
    const char *proxy = getenv("http_proxy");
    printf("%s\n", proxy ? proxy : "");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin) != NULL) {
        char credentials[1024], after[16], authorization[1100] = "";
        if (!strncmp(line, "drop", 4)) {
            while (holding) {
                close(held[--holding]);
            }
            printf("{}\n");
            fflush(stdout);
            continue;
        }
        if (sscanf(line, "%63s %d %1023s %255s %d %127s %d %d %15s %d %ld %lf", job.host, &job.port, credentials,
                   job.authority, &job.tunnel, job.path, &job.absolute, &job.status, after, &job.concurrency, &job.count,
                   &job.seconds) != 12 ||
            job.concurrency < 1 || job.concurrency > MOST || job.count < 1 || job.count > 10000000) {
            fprintf(stderr, "not understood: %s", line);
            return 2;
        }
        job.after = !strcmp(after, "keep") ? KEEP : !strcmp(after, "hold") ? HOLD : CLOSE;
        if (job.after == HOLD && job.count + holding > MOST) {
            job.count = MOST - holding;
        }
        if (strcmp(credentials, "-") != 0) {
            sprintf(authorization, "Proxy-Authorization: Basic %s\r\n", credentials);
        }
        if (!strcmp(job.path, "-")) {
            job.path[0] = 0;
        }
        job.connect_length = sprintf(job.connect, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n%s\r\n", job.authority, job.authority, authorization);
        job.request_length = sprintf(job.request, "GET %s%s%s HTTP/1.1\r\nHost: %s\r\nUser-Agent: load/1\r\nAccept: */*\r\n%s\r\n",
                                     job.absolute ? "http://" : "", job.absolute ? job.authority : "", job.path, job.authority,
                                     job.absolute ? authorization : "");
        run();
    }
    return 0;
}

int main(int count, char **words) {
    more_descriptors();
    signal(SIGPIPE, SIG_IGN); /* sendfile(2) has no MSG_NOSIGNAL */
    if (count == 2 && !strcmp(words[1], "origin")) {
        return origin();
    }
    if (count == 2 && !strcmp(words[1], "client")) {
        return client();
    }
    fprintf(stderr, "usage: network_load origin|client\n");
    return 2;
}
