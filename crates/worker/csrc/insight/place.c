/* Position in PHP code during a wait: function, file and line. */
#include "insight/place.h"
#include <php.h>
#include <stdio.h>

enum { PLACE_BYTES = 1024 };

/* Returns the frame of the application's code that runs, or that has called the running
 * function. */
static const zend_execute_data *frame_of_code(void) {
    const zend_execute_data *frame = EG(current_execute_data);
    while (frame && (!frame->func || !ZEND_USER_CODE(frame->func->type))) {
        frame = frame->prev_execute_data;
    }
    return frame;
}

/* Code outside of functions has no name. */
static int write_function(char *to, size_t room, const zend_function *function) {
    const zend_string *name = function->common.function_name;
    if (!name) {
        return 0;
    }
    const zend_class_entry *class = function->common.scope;
    return class ? snprintf(to, room, "%s::%s() ", ZSTR_VAL(class->name), ZSTR_VAL(name))
                 : snprintf(to, room, "%s() ", ZSTR_VAL(name));
}

void samovar_place_note(short_name *place) {
    place->len = 0;
    const zend_execute_data *frame = frame_of_code();
    if (!frame || !frame->opline) {
        return;
    }
    char text[PLACE_BYTES];
    const size_t room = sizeof text / 2;
    const int named = write_function(text, room, frame->func);
    const size_t begin = MIN((size_t)MAX(named, 0), room - 1);
    const int written = snprintf(text + begin, sizeof text - begin, "%s:%u",
                                 zend_get_executed_filename(), zend_get_executed_lineno());
    const size_t len = MIN(begin + (size_t)MAX(written, 0), sizeof text - 1);
    const size_t cut = len > NAME_BYTES ? len - NAME_BYTES : 0;
    samovar_short_name(place, text + cut, len - cut);
}
