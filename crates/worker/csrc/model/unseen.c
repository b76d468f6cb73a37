/* Whose end can be seen. A destructor runs code, and freeing a connection closes it. Most objects
 * only give memory back, which the rollback does for less: it costs the pages that the end would
 * write, and each object's end writes into the object. */
#include "model/unseen.h"
#include "boundary.h"
#include <zend_closures.h>
#include <zend_fibers.h>
#include <zend_generators.h>
#include <zend_observer.h>

/* Classes of extensions whose objects are freed by functions of their own, and hold nothing but
 * memory and other values; with all classes below them. */
static const char *const memory_only[] = {
    "arrayiterator",
    "arrayobject",
    "closure",
    "dateinterval",
    "dateperiod",
    "datetime",
    "datetimeimmutable",
    "datetimezone",
    "reflectionattribute",
    "reflectionclass",
    "reflectionclassconstant",
    "reflectionfunctionabstract",
    "reflectionparameter",
    "reflectionproperty",
    "reflectiontype",
    "spldoublylinkedlist",
    "splfixedarray",
    "splheap",
    "splobjectstorage",
    "splpriorityqueue",
    "weakmap",
    "weakreference",
};
enum { MEMORY_ONLY = sizeof memory_only / sizeof memory_only[0] };

/* Those that this PHP has. */
static const zend_class_entry *harmless[MEMORY_ONLY];
static uint32_t harmless_count;

/* By handle: objects of the boot that hold more than memory, which no end of a request frees. NULL
 * where there is none. */
static zend_object **held;
static uint32_t held_count;

/* It was found out that nobody would see any end, and no code has run since. */
SAMOVAR_OF_REQUEST static bool known_unseen;

static void find_classes(void) {
    harmless_count = 0;
    for (size_t i = 0; i < MEMORY_ONLY; i++) {
        const zend_class_entry *found =
            zend_hash_str_find_ptr(CG(class_table), memory_only[i], strlen(memory_only[i]));
        if (found && found->type == ZEND_INTERNAL_CLASS) {
            harmless[harmless_count++] = found;
        }
    }
}

static bool is_harmless(const zend_class_entry *class) {
    for (; class; class = class->parent) {
        for (uint32_t i = 0; class->type == ZEND_INTERNAL_CLASS && i < harmless_count; i++) {
            if (class == harmless[i]) {
                return true;
            }
        }
    }
    return false;
}

static bool has_destructor(const zend_object *object) {
    return object->ce->destructor || object->handlers->dtor_obj != zend_objects_destroy_object;
}

/* Of generators and fibers that is their `finally`. The iterators of SPL run none: they close their
 * files when they are destructed, not when they are freed. */
static bool runs_code(const zend_object *object) {
    return object->ce->destructor || object->ce == zend_ce_generator || object->ce == zend_ce_fiber;
}

/* What holds more than memory, a connection for one, must outlive the end of a request, which
 * empties the global scope: a reference more keeps it. Destructors of classes run all the same. An
 * object that runs no code then is marked as PHP marks it at the end of the script, so that no
 * request has to. */
static void prepare(uint32_t handle, zend_object *object) {
    if (object->handlers->free_obj != zend_object_std_dtor) {
        GC_ADDREF(object);
        held[handle] = object;
    }
    if (!runs_code(object)) {
        GC_ADD_FLAGS(object, IS_OBJ_DESTRUCTOR_CALLED);
    }
}

/* Its handler may make objects, whatever ends just now. */
static void on_error(int type, zend_string *file, uint32_t line, zend_string *message) {
    (void)type, (void)file, (void)line, (void)message;
    known_unseen = false;
}

void samovar_unseen_startup(void) {
    zend_observer_error_register(on_error);
}

void samovar_unseen_prepare(void) {
    find_classes();
    held_count = EG(objects_store).top;
    held = pecalloc(held_count, sizeof *held, 1);
    for (uint32_t i = 1; i < held_count; i++) {
        zend_object *object = EG(objects_store).object_buckets[i];
        if (IS_OBJ_VALID(object)) {
            prepare(i, object);
        }
    }
}

/* In line: all objects of a large boot pass here at the end of a request. */
static inline bool is_freed_seen(uint32_t handle, const zend_object *object) {
    return object->handlers->free_obj != zend_object_std_dtor &&
           !(handle < held_count && held[handle] == object) && !is_harmless(object->ce);
}

bool samovar_is_freed_seen(uint32_t handle, const zend_object *object) {
    return is_freed_seen(handle, object);
}

static inline bool ends_unseen(uint32_t handle, const zend_object *object) {
    return ((OBJ_FLAGS(object) & IS_OBJ_DESTRUCTOR_CALLED) || !has_destructor(object)) &&
           !is_freed_seen(handle, object);
}

static bool all_end_unseen(void) {
    const zend_objects_store *store = &EG(objects_store);
    for (uint32_t i = 1; i < store->top; i++) {
        const zend_object *object = store->object_buckets[i];
        if (IS_OBJ_VALID(object) && !ends_unseen(i, object)) {
            return false;
        }
    }
    return true;
}

bool samovar_objects_end_unseen(void) {
    known_unseen = known_unseen || all_end_unseen();
    return known_unseen;
}

bool samovar_objects_ended_unseen(void) {
    return known_unseen;
}
