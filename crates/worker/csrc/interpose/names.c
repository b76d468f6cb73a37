/* getaddrinfo, gethostbyname, getnameinfo, res_query: waits for a name service. libc and its
 * modules make the queries internally, so the whole function is one call of the hook. */
#define _GNU_SOURCE
#include "interpose/blocking.h"
#include "interpose/original.h"
#include <netdb.h>
#include <netinet/in.h>
#include <resolv.h>

#define ARG(value) SAMOVAR_ARGUMENT(value)
#define NAMES(function, host, ...)                                                                 \
    BLOCKING_FUNCTION_OF(BLOCKS_NAMES, host, function, original, __VA_ARGS__)

int getaddrinfo(const char *host, const char *service, const struct addrinfo *hints,
                struct addrinfo **to) {
    ORIGINAL(getaddrinfo)
    return (int)NAMES(NAMES_GETADDRINFO, host, ARG(host), ARG(service), ARG(hints), ARG(to));
}

int getnameinfo(const struct sockaddr *address, socklen_t len, char *host, socklen_t host_room,
                char *service, socklen_t service_room, int flags) {
    ORIGINAL(getnameinfo)
    return (int)NAMES(NAMES_GETNAMEINFO, NULL, ARG(address), len, ARG(host), host_room,
                      ARG(service), service_room, flags);
}

struct hostent *gethostbyname(const char *host) {
    ORIGINAL(gethostbyname)
    return (struct hostent *)NAMES(NAMES_GETHOSTBYNAME, host, ARG(host));
}

struct hostent *gethostbyname2(const char *host, int family) {
    ORIGINAL(gethostbyname2)
    return (struct hostent *)NAMES(NAMES_GETHOSTBYNAME2, host, ARG(host), family);
}

struct hostent *gethostbyaddr(const void *address, socklen_t len, int family) {
    ORIGINAL(gethostbyaddr)
    return (struct hostent *)NAMES(NAMES_GETHOSTBYADDR, NULL, ARG(address), len, family);
}

int gethostbyname_r(const char *host, struct hostent *to, char *buffer, size_t room,
                    struct hostent **result, int *error) {
    ORIGINAL(gethostbyname_r)
    return (int)NAMES(NAMES_GETHOSTBYNAME_R, host, ARG(host), ARG(to), ARG(buffer), (long)room,
                      ARG(result), ARG(error));
}

int gethostbyaddr_r(const void *address, socklen_t len, int family, struct hostent *to,
                    char *buffer, size_t room, struct hostent **result, int *error) {
    ORIGINAL(gethostbyaddr_r)
    return (int)NAMES(NAMES_GETHOSTBYADDR_R, NULL, ARG(address), len, family, ARG(to), ARG(buffer),
                      (long)room, ARG(result), ARG(error));
}

int res_nsearch(res_state state, const char *host, int class, int type, unsigned char *response,
                int room) {
    ORIGINAL(res_nsearch)
    return (int)NAMES(NAMES_RES_NSEARCH, host, ARG(state), ARG(host), class, type, ARG(response),
                      room);
}

int res_query(const char *host, int class, int type, unsigned char *response, int room) {
    ORIGINAL(res_query)
    return (int)NAMES(NAMES_RES_QUERY, host, ARG(host), class, type, ARG(response), room);
}
