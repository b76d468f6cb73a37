/* The point to which a worker returns after each request, and the rollback itself.
 *
 * A rollback runs on its own stack with all signals blocked. It restores state in the kernel
 * (put_back.c, mappings.c, process.c), then memory (hot.c), then the stack. Then it returns once
 * more from the getcontext() in samovar_rollback_here(). */
#define _GNU_SOURCE
#include "rollback/rollback.h"
#include "boundary.h"
#include "memory/arena.h"
#include "memory/hot.h"
#include "memory/mappings.h"
#include "outside/connection_protocols.h"
#include "outside/connections.h"
#include "outside/descendants.h"
#include "outside/paths.h"
#include "outside/preflight.h"
#include "outside/put_back.h"
#include "rollback/process.h"
#include "rollback/reseed.h"
#include <php.h>
#include <zend_fibers.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>

enum {
    RESTORE_STACK_BYTES = 256 << 10,
    RED_ZONE = 128, /* below the stack pointer and still in use (x86-64 ABI) */
    STACK_BYTES_MAX = 8 << 20
};

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static char *stack_pointer(const ucontext_t *context) {
#if defined(__x86_64__)
    return (char *)context->uc_mcontext.gregs[REG_RSP];
#elif defined(__aarch64__)
    return (char *)context->uc_mcontext.sp;
#else
#error "which register is the stack pointer?"
#endif
}

/* Checks that must precede all restoring: a doubt ends the worker. The last reason counts. */
static void leave_when_in_doubt(void) {
    volatile leave_reason *leave = &samovar_persistent->leave;
    kept_state *kept = samovar_kept_state();
    /* First: a process may use a connection until it has ended. */
    const bool descendants_remain = samovar_descendants_remain();
    if (!samovar_talk_ends(kept, samovar_rollback_state()->unclean) ||
        !samovar_put_back_are_quiet(kept)) {
        *leave = LEAVE_CONNECTION;
    }
    const bool are_known = samovar_put_back_are_known(kept);
    if (!are_known) {
        *leave = LEAVE_DESCRIPTOR;
    }
    if (descendants_remain) {
        *leave = *leave == LEAVE_NOT ? LEAVE_CHILD : *leave;
        if (are_known) {
            samovar_descendants_hang_up(kept);
        }
    }
    const leave_reason doubt =
        samovar_process_doubt(samovar_process_state(), samovar_hot_state()->threads_started);
    if (doubt != LEAVE_NOT) {
        *leave = doubt;
    }
    if (*leave != LEAVE_NOT) {
        samovar_leave_for(*leave);
    }
}

/* Runs on a stack in shared memory. Must not rely on memory that is being restored, such as
 * samovar_persistent. */
static void restore(void) {
    rollback_state *r = samovar_rollback_state();
    hot_state *hot = samovar_hot_state();
    arena_state *arena = samovar_arena_state();
    mappings_state *mappings = samovar_mappings_state();
    process_state *process = samovar_process_state();
    const kept_state *kept = samovar_kept_state();
    const uint64_t from = now_ns();
    const bool touched = samovar_hot_touched(hot);
    leave_when_in_doubt();
    samovar_put_back(kept);
    samovar_must(samovar_arena_restore(arena), LEAVE_MAPPING);
    samovar_mappings_restore(mappings, touched, r->count);
    samovar_process_restore(process);
    samovar_hot_restore(hot, touched, r->count);
    memcpy(r->stack_low, r->stack_copy, r->stack_len);
    r->count++;
    r->last_ns = now_ns() - from;
    setcontext(&r->resume);
    _exit(71); /* Reached only with a broken context. */
}

_Noreturn void samovar_roll_back(void) {
    samovar_rolls_back();
    samovar_paths_look(samovar_paths_state());
    setcontext(&samovar_rollback_state()->restore);
    _exit(71);
}

static bool prepare_restore(rollback_state *s) {
    char *stack = samovar_shared_memory(RESTORE_STACK_BYTES);
    if (!stack || getcontext(&s->restore) != 0) {
        return false;
    }
    s->restore.uc_stack.ss_sp = stack;
    s->restore.uc_stack.ss_size = RESTORE_STACK_BYTES;
    s->restore.uc_link = NULL;
    sigfillset(&s->restore.uc_sigmask);
    makecontext(&s->restore, restore, 0);
    return true;
}

/* In a fiber the current stack is part of the image, and the process's own stack is that of the
 * main fiber. */
static char *lowest_of_main_stack(const rollback_state *s) {
    char *low = stack_pointer(&s->resume);
    if (EG(active_fiber) && EG(main_fiber_context)) {
        low = EG(main_fiber_context)->handle;
    }
    return low - RED_ZONE;
}

static bool save_stack(rollback_state *s) {
    const char *top = (const char *)samovar_image->stack_top;
    s->stack_low = lowest_of_main_stack(s);
    s->stack_len = (size_t)(top - s->stack_low);
    if (s->stack_low > top || s->stack_len > s->stack_room) {
        return false;
    }
    memcpy(s->stack_copy, s->stack_low, s->stack_len);
    return true;
}

/* The order matters. The descriptors of the boot are recorded before the worker opens any of its
 * own. The pages come last, because changes made by the worker so far are copied there. */
static bool start(void) {
    rollback_state *r = samovar_rollback_state();
    hot_state *hot = samovar_hot_state();
    mappings_state *mappings = samovar_mappings_state();
    process_state *process = samovar_process_state();
    kept_state *kept = samovar_kept_state();
    samovar_arena_start(samovar_arena_state());
    r->stack_room = STACK_BYTES_MAX;
    r->stack_copy = samovar_shared_memory(r->stack_room);
    if (!r->stack_copy || !samovar_kept_begin(kept, samovar_preflight_shares())) {
        return false;
    }
    samovar_connections_begin();
    if (!samovar_hot_open(hot) || !samovar_mappings_open(mappings) ||
        !samovar_process_begin(process) || !samovar_put_back_begin(kept, process->cwd) ||
        !prepare_restore(r) || !samovar_hot_start(hot)) {
        return false;
    }
    samovar_persistent->leave = LEAVE_NOT; /* Discards the records of this start. */
    samovar_process_settle(process);
    *samovar_descendants_state() = (descendants_state){0};
    return samovar_mappings_settle(mappings);
}

/* A process forked by a request is not a worker: it must reach neither the persistent state nor
 * the ring. */
void samovar_forked(void) {
    samovar_talk_forked();
    samovar_descendants_forked();
    samovar_persistent_end();
    samovar_detach();
}

bool samovar_rollback_here(void) {
    samovar_reseed_prepare();
    if (!samovar_persistent_begin()) {
        return false;
    }
    if (!start()) {
        samovar_persistent_end();
        return false;
    }
    getcontext(&samovar_rollback_state()->resume);
    rollback_state *r = samovar_rollback_state();
    if (r->count == 0) {
        if (!save_stack(r)) {
            samovar_persistent_end();
            return false;
        }
        samovar_paths_look(samovar_paths_state());
    } else {
        const hot_state *hot = samovar_hot_state();
        samovar_rolled_back(r->last_ns, hot->count, hot->searched);
    }
    samovar_paths_forget(samovar_paths_state());
    samovar_reseed();
    return true;
}
