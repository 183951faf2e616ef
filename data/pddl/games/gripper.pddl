; A robot with two grippers carries balls between rooms.
(define (domain gripper)
  (:types room ball gripper)
  (:predicates
    (at-robby ?room - room)
    (at ?ball - ball ?room - room)
    (free ?gripper - gripper)
    (carry ?ball - ball ?gripper - gripper))
  (:action move
    :parameters (?from ?to - room)
    :precondition (at-robby ?from)
    :effect (and (at-robby ?to) (not (at-robby ?from))))
  (:action pick
    :parameters (?ball - ball ?room - room ?gripper - gripper)
    :precondition (and (at-robby ?room) (at ?ball ?room) (free ?gripper))
    :effect (and (carry ?ball ?gripper) (not (at ?ball ?room)) (not (free ?gripper))))
  (:action drop
    :parameters (?ball - ball ?room - room ?gripper - gripper)
    :precondition (and (at-robby ?room) (carry ?ball ?gripper))
    :effect (and (at ?ball ?room) (free ?gripper) (not (carry ?ball ?gripper)))))
